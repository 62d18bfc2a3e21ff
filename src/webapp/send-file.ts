import { DavFailure, reasonIn } from './dav.ts';
import { t } from './messages.ts';
import { csrfHeader } from './session.ts';

/** A request whose body is a file or a part of one. */
interface FileRequest {
  readonly method: 'PUT' | 'POST';
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Blob;
  /** Aborted to give it up. */
  readonly signal: AbortSignal;
  /** Called with the number of bytes that were sent. */
  readonly onSent: (bytes: number) => void;
}

/** Sends a request, and tells how far it is, which `fetch` cannot. Resolves with the answer's text. Throws `DavFailure`. */
export async function sendFile(request: FileRequest): Promise<string> {
  const { method, address, headers, body, signal, onSent } = request;
  const own = await csrfHeader(method);
  return new Promise((resolve, reject) => {
    const gone = (reason: string) => reject(new DavFailure(0, reason));
    if (signal.aborted) return gone(t('stopped'));
    const sent = new XMLHttpRequest();
    const stop = () => sent.abort();
    signal.addEventListener('abort', stop, { once: true });
    sent.open(method, address);
    for (const [name, value] of Object.entries({ ...headers, ...own })) sent.setRequestHeader(name, value);
    sent.upload.onprogress = ({ loaded }) => onSent(loaded);
    sent.onload = () => {
      const { status, responseText } = sent;
      if (status < 300) resolve(responseText);
      else reject(new DavFailure(status, reasonIn(responseText, status)));
    };
    sent.onerror = () => gone(t('offline'));
    sent.onabort = () => gone(t('stopped'));
    sent.onloadend = () => signal.removeEventListener('abort', stop);
    sent.send(body);
  });
}
