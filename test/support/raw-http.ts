import { connect, type Socket } from 'node:net';

/** A bare TCP connection to a server on this machine, for requests that no HTTP client would send. */
export interface RawConnection {
  readonly socket: Socket;
  send(text: string | Uint8Array): void;
  /** Resolves with all that has come, as Latin-1, once it holds `text`; rejects when the connection ends without. */
  until(text: string): Promise<string>;
  /** Resolves with all that came, once the other side has closed; also when it broke the connection. */
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
