import { createClient, createSentinel, type RESP_TYPES } from '@redis/client';
import { systemClock } from '../../util/clock.ts';
import type { RedisAddress } from '../../util/redis-address.ts';
import { Circuit } from './circuit.ts';
import { isLoginWanted } from './failure.ts';

/** Deadline of a connection attempt, in ms. */
const CONNECT_MS_MAX = 5_000;

/** A connection that received nothing for this long is closed, in ms; pings make a live one receive something. */
const SILENCE_MS_MAX = 15_000;

/** Shortest time between two attempts to reconnect, in ms; the longest follows. */
const RECONNECT_MS = 50;
const RECONNECT_MS_MAX = 400;

/** How often Sentinels are asked for the primary even if they announce no change, in ms. */
const SCAN_EVERY_MS = 5_000;

/** Maximum number of unanswered commands: far above normal use, and a bound while Redis is unreachable. */
const WAITING_MAX = 100_000;

export type Word = string | Buffer;

export interface SendOptions {
  /** Keeps a command that has not been sent from being sent. */
  readonly abortSignal?: AbortSignal;
  /** Decides which types answers have. */
  readonly typeMapping?: { readonly [RESP_TYPES.BLOB_STRING]: typeof Buffer };
}

/** A Redis that takes writes, and whether it can be reached. */
export interface Server {
  readonly circuit: Circuit;
  /** Sends a command whose keys, if any, have the slot of `key`. */
  send(words: readonly Word[], options?: SendOptions, key?: string): Promise<unknown>;
}

/** The way to a Redis of any kind. */
export interface Client {
  connect(): Promise<void>;
  /** Returns the server that has `key`; any without a key. */
  serverOf(key: string | undefined): Server;
  servers(): readonly Server[];
  destroy(): void;
}

export interface ClientDeps {
  readonly address: RedisAddress;
  readonly onAway: (error: unknown) => void;
  readonly onBack: () => void;
}

/** Options of a connection to one server. */
export function optionsFor({ isTls, username, password, database }: RedisAddress, wasReady: () => boolean) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database > 0 && { database }),
    // The older protocol is sufficient, and every proxy in front of Redis supports it.
    RESP: 2,
    maintNotifications: 'disabled',
    disableClientInfo: true,
    name: 'davgate',
    // Commands do not wait in the library for the connection's return, which would hide that Redis is away.
    disableOfflineQueue: true,
    commandsQueueMaxLength: WAITING_MAX,
    socket: {
      connectTimeout: CONNECT_MS_MAX,
      socketTimeout: SILENCE_MS_MAX,
      tls: isTls,
      // An unreachable Redis at start means a wrong setting; later the connection waits for it.
      reconnectStrategy: (retries: number) =>
        wasReady() ? Math.min(RECONNECT_MS * 2 ** Math.min(retries, 16), RECONNECT_MS_MAX) : false,
    },
  } as const;
}

/** The library's own limit of 5 s would expire before ours. */
export const COMMAND_OPTIONS = { timeout: 0 } as const;

/** Returns a client of one server. */
export function serverClient({ address, onAway, onBack }: ClientDeps): Client {
  let wasReady = false;
  const { socket, ...options } = optionsFor(address, () => wasReady);
  const to = { ...socket, ...address.hosts[0] };
  const client = createClient({
    ...options,
    commandOptions: COMMAND_OPTIONS,
    socket: address.isTls ? { ...to, tls: true } : { ...to, tls: false },
  });
  const send: Server['send'] = (words, sendOptions) => client.sendCommand(words, sendOptions);
  const circuit = circuitFor(() => send(['PING']), { onAway, onBack });
  client.on('error', (error) => {
    if (wasReady) circuit.lost(error);
  });
  client.on('ready', () => {
    wasReady = true;
    void circuit.connected();
  });
  const server = { circuit, send };
  return {
    async connect() {
      await client.connect();
      circuit.watch();
    },
    serverOf: () => server,
    servers: () => [server],
    destroy() {
      circuit.close();
      client.destroy();
    },
  };
}

/** Returns a client of the primary that Sentinels name. Sentinels that want a login get that of Redis. */
export function sentinelClient({ address, onAway, onBack }: ClientDeps): Client {
  let wasReady = false;
  // The answer of a Sentinel says more than the library's error that none is available.
  let refusal: unknown;
  const open = (login: Pick<RedisAddress, 'username' | 'password'>) => {
    const { kind, isTls, hosts, primary } = address;
    const asked = { kind, isTls, hosts, primary, database: 0, ...login };
    const { socket, ...options } = optionsFor(asked, () => wasReady);
    return createSentinel({
      name: primary,
      sentinelRootNodes: [...hosts],
      RESP: 2,
      // The library must not send a command a second time, because it cannot know whether the first was executed.
      maxCommandRediscovers: 0,
      scanInterval: SCAN_EVERY_MS,
      commandOptions: COMMAND_OPTIONS,
      nodeClientOptions: optionsFor(address, () => wasReady),
      sentinelClientOptions: { ...options, socket: { ...socket, reconnectStrategy: false } },
    })
      .on('error', (error) => {
        refusal = error;
      })
      .on('client-error', ({ type, error }) => {
        if (type === 'MASTER' && wasReady) circuit.lost(error);
      })
      .on('ready', () => {
        wasReady = true;
        void circuit.connected();
      });
  };
  let sentinel = open({});
  const send: Server['send'] = (words, options) => sentinel.sendCommand(false, [...words], options);
  const circuit = circuitFor(() => send(['PING']), { onAway, onBack });
  const server = { circuit, send };
  const connect = async () => {
    try {
      await sentinel.connect();
    } catch (error) {
      throw refusal instanceof Error ? refusal : error;
    }
  };
  return {
    async connect() {
      await connect().catch((error: unknown) => {
        if (!isLoginWanted(error)) throw error;
        refusal = undefined;
        sentinel = open(address);
        return connect();
      });
      circuit.watch();
    },
    serverOf: () => server,
    servers: () => [server],
    destroy() {
      circuit.close();
      // Rejects only when a listener throws.
      void sentinel.destroy();
    },
  };
}

export function circuitFor(
  ping: () => Promise<unknown>,
  events: Pick<ClientDeps, 'onAway' | 'onBack'>,
): Circuit {
  // Redis answers in real time, also to tests that set the time of locks.
  return new Circuit({ clock: systemClock, ping, ...events });
}
