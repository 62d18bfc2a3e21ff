import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, type Instant, instantIn, LONG_AGO } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { type Networks, neighborhoodOf, plainAddress } from '../util/networks.ts';
import type { Exchange } from './exchange.ts';
import type { ListenerLimits } from './limits.ts';

/** How long to wait between two lines of the log about connections over the limit: a flood must not flood the log. */
const DROP_LOG_PAUSE_MS = 60_000;

/** A client's connection, from its first byte: the handshake included, if it is encrypted. */
export class Connection {
  /** Requests that were read and whose answers are not out, in the order they came. */
  readonly exchanges = new Set<Exchange>();
  /** It brought what was no request: what follows may be the part of it that was to be smuggled in. */
  isGivenUp = false;
  /** A request on it brought valid credentials. */
  isAuthenticated = false;
  /** Since when no request is under way. */
  silentSince: Instant;
  /** What HTTP is spoken over: with TLS another than the one that was accepted. */
  socket: Socket;
  readonly address: string;
  readonly #accepted: Socket;

  constructor(accepted: Socket, now: Instant) {
    this.#accepted = accepted;
    this.socket = accepted;
    this.address = plainAddress(accepted.remoteAddress ?? '');
    this.silentSince = now;
  }

  destroy(): void {
    this.socket.destroy();
    this.#accepted.destroy();
  }
}

export interface ConnectionsOptions {
  readonly isTls: boolean;
  readonly limits: Pick<ListenerLimits, 'connectionsMax' | 'connectionsPerAddressMax'>;
  /** Many clients share the addresses of these. */
  readonly proxies: Networks;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * All open connections of a server and the exchanges on them. When there are too many, of one client or of all, the one
 * that has been silent longest goes; a new one only where a request runs on each of the others.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Set<Connection>();
  /** Connections without a request, the longest silent first. */
  readonly #silent = new Set<Connection>();
  readonly #byClient = new Map<string, Set<Connection>>();
  readonly #bySocket = new WeakMap<object, Connection>();
  /** Connections whose handshake is not over, by the client's address and port. */
  readonly #shaking = new Map<string, Connection>();
  readonly #running = new Set<Exchange>();
  #quietUntil = LONG_AGO;

  constructor(server: Server, options: ConnectionsOptions) {
    this.#options = options;
    server.on('connection', (socket: Socket) => this.#accept(socket));
    if (options.isTls) server.on('secureConnection', (socket: Socket) => this.#secured(socket));
  }

  /** Exchanges whose handlers run, or whose answers are not out. */
  get running(): ReadonlySet<Exchange> {
    return this.#running;
  }

  /** Connections without a request, the longest silent first. */
  get silent(): ReadonlySet<Connection> {
    return this.#silent;
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
    this.#silent.delete(connection);
    this.#running.add(exchange);
  }

  end(connection: Connection, exchange: Exchange): void {
    this.#running.delete(exchange);
    connection.exchanges.delete(exchange);
    connection.isAuthenticated ||= exchange.principal !== undefined;
    if (connection.exchanges.size > 0 || !this.#open.has(connection)) return;
    connection.silentSince = this.#options.clock.instant();
    this.#silent.add(connection);
    this.#mine(connection).delete(connection);
    this.#mine(connection).add(connection);
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, this.#options.clock.instant());
    if (!this.#makeRoom(connection)) return void socket.destroy();
    this.#open.add(connection);
    this.#silent.add(connection);
    this.#mine(connection).add(connection);
    this.#bySocket.set(socket, connection);
    const peer = peerOf(socket);
    if (this.#options.isTls) this.#shaking.set(peer, connection);
    socket.once('close', () => {
      if (this.#shaking.get(peer) === connection) this.#shaking.delete(peer);
      this.#close(connection);
    });
  }

  /** Whether there is room for another connection, or one could be closed for it. */
  #makeRoom(connection: Connection): boolean {
    const { limits, proxies } = this.#options;
    const mine = this.#mine(connection);
    if (mine.size >= limits.connectionsPerAddressMax && !proxies.has(connection.address))
      return this.#closeLongestSilent(mine, connection.address);
    return this.#open.size < limits.connectionsMax || this.#closeLongestSilent(this.#silent, undefined);
  }

  #closeLongestSilent(among: ReadonlySet<Connection>, address: string | undefined): boolean {
    this.#logLimit(address);
    for (const connection of among) {
      if (connection.exchanges.size > 0) continue;
      this.#close(connection);
      connection.destroy();
      return true;
    }
    return false;
  }

  /** Connections of the same client, in the order in which they fell silent. */
  #mine({ address }: Connection): Set<Connection> {
    const client = neighborhoodOf(address);
    const mine = this.#byClient.get(client) ?? new Set();
    this.#byClient.set(client, mine);
    return mine;
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
    this.#silent.delete(connection);
    const mine = this.#mine(connection);
    mine.delete(connection);
    if (mine.size === 0) this.#byClient.delete(neighborhoodOf(connection.address));
    for (const exchange of connection.exchanges) exchange.close();
  }

  /** `address` has too many connections, or all clients together have. */
  #logLimit(address: string | undefined): void {
    const { clock, log, limits } = this.#options;
    if (clock.instant() < this.#quietUntil) return;
    this.#quietUntil = instantIn(clock, DROP_LOG_PAUSE_MS);
    const limit = address === undefined ? limits.connectionsMax : limits.connectionsPerAddressMax;
    log.warn('connections over the limit are closed', { address, limit });
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
