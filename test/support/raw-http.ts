import { connect, type Socket } from 'node:net';

/** A raw TCP connection to a server on this machine, for requests that no HTTP client sends. */
export interface RawConnection {
  readonly socket: Socket;
  send(text: string | Uint8Array): void;
  /**
   * Resolves with all bytes received, as Latin-1, once they contain `text`. Rejects when the connection ends
   * without it.
   */
  until(text: string): Promise<string>;
  /** Resolves with all bytes received when the other side has closed or reset the connection. */
  closed(): Promise<string>;
}

export function connectRaw(port: number, first = ''): RawConnection {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let received = '';
  let isClosed = false;
  let check = (): void => undefined;
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    received += chunk;
    check();
  });
  for (const event of ['end', 'close', 'error'])
    socket.on(event, () => {
      isClosed = true;
      socket.destroy();
      check();
    });
  const when = (isDone: () => boolean) =>
    new Promise<string>((resolve, reject) => {
      check = () => {
        if (isDone()) resolve(received);
        else if (isClosed) reject(new Error(`closed after ${JSON.stringify(received)}`));
      };
      check();
    });
  if (first !== '') socket.write(first, 'latin1');
  return {
    socket,
    send: (text) => void (typeof text === 'string' ? socket.write(text, 'latin1') : socket.write(text)),
    until: (text) => when(() => received.includes(text)),
    closed: () => when(() => isClosed),
  };
}
