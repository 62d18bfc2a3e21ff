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

/** Sends a request, and tells how far it is, which `fetch` cannot. The status is 0 without an answer. */
export function requestWithFile(request: FileRequest): Promise<{
  readonly status: number;
  readonly text: string;
}> {
  const { method, address, headers, body, signal, onSent } = request;
  return new Promise((resolve) => {
    const sent = new XMLHttpRequest();
    const stop = () => sent.abort();
    signal.addEventListener('abort', stop, { once: true });
    sent.open(method, address);
    for (const [name, value] of Object.entries(headers)) sent.setRequestHeader(name, value);
    sent.upload.onprogress = ({ loaded }) => onSent(loaded);
    sent.onload = () => resolve({ status: sent.status, text: sent.responseText });
    sent.onerror = () => resolve({ status: 0, text: '' });
    sent.onabort = () => resolve({ status: 0, text: '' });
    sent.onloadend = () => signal.removeEventListener('abort', stop);
    sent.send(body);
  });
}
