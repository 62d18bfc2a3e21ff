import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect } from 'vitest';
import type { Lock } from '../../src/state/locks.ts';
import type { Certificate } from './certificate.ts';
import { freePort } from './free-port.ts';
import { end, launch, suspend } from './launched.ts';
import { serverFolder } from './server-folder.ts';

export interface TestRedis {
  readonly port: number;
  /** The certificate with which it speaks TLS alone. */
  readonly certificate: Certificate | undefined;
  readonly url: string;
  /** Suspends Redis like a hanging machine: connections are accepted and never answered. */
  pause(): void;
  resume(): void;
  /** Kills Redis with SIGKILL, like a crash. */
  kill(): Promise<void>;
  /** Starts Redis again on the same port and data. */
  start(): Promise<void>;
  /** Stops Redis and removes its data. */
  close(): Promise<void>;
}

export type TestSentinel = Pick<TestRedis, 'port' | 'certificate' | 'close'>;

/**
 * Starts a real Redis on a free loopback port. Acknowledged writes are in its files, unless `settings` say otherwise.
 */
export async function startRedis(
  settings: readonly string[] = [],
  certificate?: Certificate,
): Promise<TestRedis> {
  const directory = await serverFolder('redis');
  const port = await freePort();
  const start = () =>
    launch(
      'redis-server',
      [
        ...portSettings(port, certificate).flatMap(([name, value]) => [`--${name}`, value]),
        ...['--bind', '127.0.0.1', '--dir', directory, '--save', ''],
        ...['--appendonly', 'yes', '--appendfsync', 'always', ...settings],
      ],
      READY,
    );
  let server = await start();
  return {
    port,
    certificate,
    url: `${certificate ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
    pause: () => suspend(server),
    resume: () => void server.kill('SIGCONT'),
    kill: () => end(server),
    async start() {
      server = await start();
    },
    async close() {
      await end(server);
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Returns the settings of a server on a port; with a certificate, it speaks TLS alone. */
function portSettings(port: number, certificate?: Certificate): readonly (readonly [string, string])[] {
  if (!certificate) return [['port', String(port)]];
  return [
    ['port', '0'],
    ['tls-port', String(port)],
    ['tls-cert-file', certificate.file],
    ['tls-key-file', certificate.keyFile],
    ['tls-ca-cert-file', certificate.file],
    ['tls-auth-clients', 'no'],
    ['tls-replication', 'yes'],
  ];
}

const READY = 'Ready to accept connections';

/** Starts a real Sentinel that knows no primary yet. */
export async function startSentinel(certificate?: Certificate): Promise<TestSentinel> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-sentinel-'));
  const settings = join(directory, 'sentinel.conf');
  const port = await freePort();
  // Sentinel keeps what it learns in its settings.
  const lines = [...portSettings(port, certificate), ['bind', '127.0.0.1'], ['dir', directory]];
  await writeFile(settings, lines.map((words) => `${words.join(' ')}\n`).join(''));
  const server = await launch('redis-sentinel', [settings], 'Sentinel ID is');
  return {
    port,
    certificate,
    async close() {
      await end(server);
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Sends a command to Redis on a new connection. Returns the answer. */
export async function sayToRedis(
  redis: Pick<TestRedis, 'port' | 'certificate'> | undefined,
  words: string,
): Promise<string> {
  if (!redis) throw new Error('there is no Redis here');
  const { port, certificate } = redis;
  const socket = certificate
    ? connectTls({ port, host: '127.0.0.1', ca: certificate.cert })
    : connect(port, '127.0.0.1');
  socket.end(`${words}\r\n`);
  let answer = '';
  socket.on('data', (piece) => {
    answer += piece.toString();
  });
  await once(socket, 'close');
  return answer;
}

/**
 * Lets `ms` pass for the locks of a drive: they end earlier by that, because the clock of Redis, which they follow, cannot
 * be set.
 */
export async function passForLocks(redis: TestRedis, drive: string, ms: number): Promise<void> {
  const script =
    `for _, token in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do ` +
    `redis.call('ZINCRBY', KEYS[1], -ARGV[1], token) end`;
  await sayToRedis(redis, `EVAL "${script}" 1 davgate:{${drive}}:lock-ends ${ms}`);
}

/** Saves the stream of changes of a drive for `restoreStream`. */
export async function saveStream(redis: TestRedis, drive: string): Promise<void> {
  const script = `redis.call('SET', KEYS[2], redis.call('DUMP', KEYS[1]))`;
  await sayToRedis(redis, `EVAL "${script}" 2 davgate:{${drive}}:changes davgate:{${drive}}:saved-changes`);
}

/** Makes Redis lose the changes of a drive since `saveStream`, like a crash before they are on the disk. */
export async function restoreStream(redis: TestRedis, drive: string): Promise<void> {
  const script = `redis.call('RESTORE', KEYS[1], 0, redis.call('GET', KEYS[2]), 'REPLACE')`;
  await sayToRedis(redis, `EVAL "${script}" 2 davgate:{${drive}}:changes davgate:{${drive}}:saved-changes`);
}

/**
 * Returns what an expectation compares a lock from Redis with: its end is measured at each call, and a slow machine takes
 * minutes for a test.
 */
export function seenInRedis(lock: Lock): Lock {
  const isNear = (endMs: number) => endMs <= lock.expiresMs && endMs > lock.expiresMs - 10 * 60_000;
  return { ...lock, expiresMs: expect.toSatisfy(isNear) };
}
