import { waitSecondsIn } from './retries.ts';

/** A request whose body is a file or a part of one. */
export interface FileRequest {
  readonly method: 'PUT' | 'POST';
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Blob;
  /** Aborted to give it up. */
  readonly signal: AbortSignal;
  /** Called with the number of bytes that were sent. */
  readonly onSent: (bytes: number) => void;
}

/** The answer to such a request. */
interface FileAnswer {
  /** 0: no answer came. */
  readonly status: number;
  readonly text: string;
  /** How long to wait before another try, in seconds. */
  readonly waitSeconds: number;
}

const NO_ANSWER: FileAnswer = { status: 0, text: '', waitSeconds: 0 };

/** Sends a request, and tells how far it is, which `fetch` cannot. */
export function requestWithFile(request: FileRequest): Promise<FileAnswer> {
  const { method, address, headers, body, signal, onSent } = request;
  return new Promise((resolve) => {
    const sent = new XMLHttpRequest();
    const stop = () => sent.abort();
    signal.addEventListener('abort', stop, { once: true });
    sent.open(method, address);
    for (const [name, value] of Object.entries(headers)) sent.setRequestHeader(name, value);
    sent.upload.onprogress = ({ loaded }) => onSent(loaded);
    sent.onload = () => {
      const waitSeconds = waitSecondsIn(sent.getResponseHeader('retry-after'));
      resolve({ status: sent.status, text: sent.responseText, waitSeconds });
    };
    sent.onerror = () => resolve(NO_ANSWER);
    sent.onabort = () => resolve(NO_ANSWER);
    sent.onloadend = () => signal.removeEventListener('abort', stop);
    sent.send(body);
  });
}
