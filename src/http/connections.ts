import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './exchange.ts';

/** A client's connection, from its first byte: the handshake included, if it is encrypted. */
export class Connection {
  /** Requests that were read and whose answers are not out, in the order they came. */
  readonly exchanges = new Set<Exchange>();
  /** It brought what was no request: what follows may be the part of it that was to be smuggled in. */
  isGivenUp = false;
  /** What HTTP is spoken over: with TLS another than the one that was accepted. */
  socket: Socket;
  readonly address: string;
  readonly #accepted: Socket;

  constructor(accepted: Socket) {
    this.#accepted = accepted;
    this.socket = accepted;
    this.address = plainAddress(accepted.remoteAddress);
  }

  destroy(): void {
    this.socket.destroy();
    this.#accepted.destroy();
  }
}

/** All open connections of a server and the exchanges on them. */
export class Connections {
  readonly #open = new Set<Connection>();
  readonly #bySocket = new WeakMap<object, Connection>();
  /** Connections whose handshake is not over, by the client's address and port. */
  readonly #shaking = new Map<string, Connection>();
  readonly #running = new Set<Exchange>();

  constructor(server: Server, isTls: boolean) {
    server.on('connection', (socket: Socket) => this.#accept(socket, isTls));
    if (isTls) server.on('secureConnection', (socket: Socket) => this.#secured(socket));
  }

  /** Exchanges whose handlers run, or whose answers are not out. */
  get running(): ReadonlySet<Exchange> {
    return this.#running;
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#open.values();
  }

  /** `undefined` once the connection is closed. */
  of(socket: object): Connection | undefined {
    const connection = this.#bySocket.get(socket);
    return connection && this.#open.has(connection) ? connection : undefined;
  }

  begin(connection: Connection, exchange: Exchange): void {
    connection.exchanges.add(exchange);
    this.#running.add(exchange);
  }

  end(connection: Connection, exchange: Exchange): void {
    connection.exchanges.delete(exchange);
    this.#running.delete(exchange);
  }

  #accept(socket: Socket, isTls: boolean): void {
    const connection = new Connection(socket);
    this.#open.add(connection);
    this.#bySocket.set(socket, connection);
    const peer = peerOf(socket);
    if (isTls) this.#shaking.set(peer, connection);
    socket.once('close', () => {
      if (this.#shaking.get(peer) === connection) this.#shaking.delete(peer);
      this.#close(connection);
    });
  }

  /** Node does not tell whose handshake it was. */
  #secured(socket: Socket): void {
    const peer = peerOf(socket);
    const connection = this.#shaking.get(peer);
    // It has gone already: the system has forgotten where it came from.
    if (!connection) return void socket.destroy();
    this.#shaking.delete(peer);
    connection.socket = socket;
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#close(connection));
  }

  #close(connection: Connection): void {
    this.#open.delete(connection);
    for (const exchange of connection.exchanges) exchange.close();
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** An IPv4 address as such, also where the socket listens for both kinds. */
function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}
