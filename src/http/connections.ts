import type { Server } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { type Clock, type Instant, instantIn, LONG_AGO } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { type Networks, neighborhoodOf, plainAddress, UNIX_PEER } from '../util/networks.ts';
import type { Exchange, Refusal } from './exchange.ts';
import type { ListenerLimits } from './limits.ts';

/** How long the log is silent about connections over the limit after one line, in ms: a flood must not flood the log. */
const LIMIT_LOG_PAUSE_MS = 60_000;

/** Maximum number of requests that an HTTP/1.1 client may send before the first of them is answered. */
const PIPELINED_MAX = 32;

/** A client's connection, from before its TLS handshake. */
export class Connection {
  /** Exchanges whose requests were read and whose answers are not sent, in order of arrival. */
  readonly exchanges = new Set<Exchange>();
  /** Whether it sent a malformed request. The bytes that follow may be a smuggled request and are ignored. */
  isRefused = false;
  /** Whether one of its requests had valid credentials. */
  isAuthenticated = false;
  /** Whether one of its requests has ended. */
  hasServed = false;
  /** Time at which its last request ended. */
  idleSince: Instant;
  /** The socket that carries HTTP: with TLS not the accepted one. */
  socket: Socket;
  /** Present if it speaks HTTP/2. */
  session: Pick<Http2Session, 'close' | 'closed'> | undefined;
  readonly address: string;
  /** The network in which the client can change its address; the limit for one client counts in it. */
  readonly client: string;
  /** Whether the peer is a trusted proxy. */
  readonly isProxy: boolean;
  readonly #accepted: Socket;

  /** `unknown`: the address of a peer that the system does not name. */
  constructor(accepted: Socket, unknown: string, proxies: Networks, now: Instant) {
    this.#accepted = accepted;
    this.socket = accepted;
    this.address = plainAddress(accepted.remoteAddress ?? unknown);
    this.client = neighborhoodOf(this.address);
    this.isProxy = proxies.has(this.address);
    this.idleSince = now;
  }

  /**
   * Tells an HTTP/2 client that this connection takes no new request, and ends it after those under way. Resolves when all
   * is sent.
   */
  endSession(): Promise<void> | undefined {
    if (!this.session) return undefined;
    this.session.close();
    const { socket } = this;
    return new Promise((resolve) => {
      if (socket.writableFinished || socket.destroyed) resolve();
      for (const event of ['finish', 'close']) socket.once(event, resolve);
    });
  }

  destroy(): void {
    this.socket.destroy();
    this.#accepted.destroy();
  }
}

export interface ConnectionsOptions {
  readonly isTls: boolean;
  readonly limits: Pick<ListenerLimits, 'connectionsMax' | 'connectionsPerAddressMax'>;
  /** Proxies, whose addresses many clients share. */
  readonly proxies: Networks;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * All open connections of a server and the exchanges on them. When one client or all clients together have too many, the
 * connection that has been idle longest is closed; if none is idle, the new one is.
 */
export class Connections {
  readonly #server: Server;
  readonly #options: ConnectionsOptions;
  readonly #open = new Set<Connection>();
  /** Connections without a request, the longest idle first. */
  readonly #idle = new Set<Connection>();
  readonly #byClient = new Map<string, Set<Connection>>();
  readonly #bySocket = new WeakMap<object, Connection>();
  /** Connections in the middle of a TLS handshake, by the client's address and port. */
  readonly #inHandshake = new Map<string, Connection>();
  readonly #running = new Set<Exchange>();
  #limitLogPausedUntil = LONG_AGO;

  constructor(server: Server, options: ConnectionsOptions) {
    this.#server = server;
    this.#options = options;
    server.on('connection', (socket: Socket) => this.#accept(socket));
    if (options.isTls) server.on('secureConnection', (socket: Socket) => this.#secured(socket));
  }

  /** Exchanges whose handlers run or whose answers are not sent. */
  get running(): ReadonlySet<Exchange> {
    return this.#running;
  }

  /** Connections without a request, the longest idle first. */
  get idle(): ReadonlySet<Connection> {
    return this.#idle;
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#open.values();
  }

  /** `undefined` once the connection is closed. */
  of(socket: object): Connection | undefined {
    const connection = this.#bySocket.get(socket);
    return connection && this.#open.has(connection) ? connection : undefined;
  }

  /** Lets `of` find `connection` by the socket of one of its HTTP/2 streams. */
  addStream(socket: object, connection: Connection): void {
    this.#bySocket.set(socket, connection);
  }

  /**
   * Resolves when the requests before one over HTTP/1.1 are answered, so that each sees what those have changed (RFC 9112
   * §9.3.2). Ends the connection of a client that sends too many at once. Returns whether it is open.
   */
  async turnOf(connection: Connection, exchange: Exchange): Promise<boolean> {
    const { exchanges } = connection;
    if (exchanges.size > PIPELINED_MAX) {
      connection.isRefused = true;
      connection.destroy();
      this.#options.log.warn('too many requests at once on one connection: it is closed', {
        address: connection.address,
        limit: PIPELINED_MAX,
      });
    }
    let before: Exchange | undefined;
    for (const other of exchanges)
      if (other === exchange) break;
      else before = other;
    await before?.ended;
    return this.#open.has(connection);
  }

  /**
   * Refuses one more request over HTTP/2 if its client, or all together, have as many under way as they may have connections:
   * over HTTP/1.1 each of them would need one, because a connection has its requests one after the other.
   */
  refusalFor(connection: Connection): Refusal | undefined {
    const { connectionsMax, connectionsPerAddressMax } = this.#options.limits;
    let running = 0;
    for (const { exchanges } of this.#ofClient(connection)) running += exchanges.size;
    if (this.#running.size < connectionsMax && (running < connectionsPerAddressMax || connection.isProxy))
      return undefined;
    return {
      status: 503,
      text: 'Too many requests at once; wait for some of them.',
      headers: { 'Retry-After': 1 },
    };
  }

  begin(connection: Connection, exchange: Exchange): void {
    connection.exchanges.add(exchange);
    this.#idle.delete(connection);
    this.#running.add(exchange);
  }

  end(connection: Connection, exchange: Exchange): void {
    this.#running.delete(exchange);
    connection.exchanges.delete(exchange);
    connection.isAuthenticated ||= exchange.principal !== undefined;
    connection.hasServed = true;
    if (connection.exchanges.size > 0 || !this.#open.has(connection)) return;
    connection.idleSince = this.#options.clock.instant();
    this.#idle.add(connection);
    this.#ofClient(connection).delete(connection);
    this.#ofClient(connection).add(connection);
  }

  #accept(socket: Socket): void {
    const { proxies, clock } = this.#options;
    const place = this.#server.address();
    // Node knows no address for a Unix socket that systemd passed.
    const unknown = typeof place === 'string' || place === null ? UNIX_PEER : '';
    const connection = new Connection(socket, unknown, proxies, clock.instant());
    if (!this.#makeRoom(connection)) {
      this.#close(connection);
      return void socket.destroy();
    }
    this.#open.add(connection);
    this.#idle.add(connection);
    this.#ofClient(connection).add(connection);
    this.#bySocket.set(socket, connection);
    const peer = peerOf(socket);
    if (this.#options.isTls) this.#inHandshake.set(peer, connection);
    socket.once('close', () => {
      if (this.#inHandshake.get(peer) === connection) this.#inHandshake.delete(peer);
      this.#close(connection);
    });
  }

  /** Makes room for `connection`, closing an idle one if necessary. Returns whether there is room. */
  #makeRoom(connection: Connection): boolean {
    const { limits } = this.#options;
    const ofClient = this.#ofClient(connection);
    if (ofClient.size >= limits.connectionsPerAddressMax && !connection.isProxy)
      return this.#closeLongestIdle(ofClient, connection.address);
    return this.#open.size < limits.connectionsMax || this.#closeLongestIdle(this.#idle, undefined);
  }

  #closeLongestIdle(among: ReadonlySet<Connection>, address: string | undefined): boolean {
    this.#logLimit(address);
    for (const connection of among) {
      if (connection.exchanges.size > 0) continue;
      this.#close(connection);
      connection.destroy();
      return true;
    }
    return false;
  }

  /** Returns the connections of the same client, the longest idle first. */
  #ofClient({ client }: Connection): Set<Connection> {
    const ofClient = this.#byClient.get(client) ?? new Set();
    this.#byClient.set(client, ofClient);
    return ofClient;
  }

  /** Finds the connection of a finished handshake by its peer, because Node does not name the accepted socket. */
  #secured(socket: Socket): void {
    const peer = peerOf(socket);
    const connection = this.#inHandshake.get(peer);
    // The peer has disconnected, and its address is no longer known.
    if (!connection) return void socket.destroy();
    this.#inHandshake.delete(peer);
    connection.socket = socket;
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#close(connection));
  }

  #close(connection: Connection): void {
    this.#open.delete(connection);
    this.#idle.delete(connection);
    const ofClient = this.#ofClient(connection);
    ofClient.delete(connection);
    if (ofClient.size === 0) this.#byClient.delete(connection.client);
    for (const exchange of connection.exchanges) exchange.close();
  }

  /** Logs that `address`, or all clients together if it is `undefined`, has too many connections. */
  #logLimit(address: string | undefined): void {
    const { clock, log, limits } = this.#options;
    if (clock.instant() < this.#limitLogPausedUntil) return;
    this.#limitLogPausedUntil = instantIn(clock, LIMIT_LOG_PAUSE_MS);
    const limit = address === undefined ? limits.connectionsMax : limits.connectionsPerAddressMax;
    log.warn('too many connections: the longest idle are closed', { address, limit });
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
