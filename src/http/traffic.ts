import type { Socket } from 'node:net';

/** What went over connections, those that are open included; with TLS, what it makes of it. */
export class Traffic {
  readonly #open = new Set<Socket>();
  #closed = { receivedBytes: 0, sentBytes: 0 };

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#closed = this.#plus(socket, this.#closed);
    });
  }

  total(): { readonly receivedBytes: number; readonly sentBytes: number } {
    let sum = this.#closed;
    for (const socket of this.#open) sum = this.#plus(socket, sum);
    return sum;
  }

  #plus(socket: Socket, { receivedBytes, sentBytes }: { receivedBytes: number; sentBytes: number }) {
    return { receivedBytes: receivedBytes + socket.bytesRead, sentBytes: sentBytes + socket.bytesWritten };
  }
}
