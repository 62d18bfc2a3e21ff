import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TestRedis {
  readonly port: number;
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

/**
 * Starts a real Redis on a free loopback port. Acknowledged writes are on disk, unless `settings` say
 * otherwise.
 */
export async function startRedis(settings: readonly string[] = []): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-redis-'));
  const port = await freePort();
  const launch = () =>
    launchRedis([
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''],
      ...['--appendonly', 'yes', '--appendfsync', 'always', ...settings],
    ]);
  let server = await launch();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    kill: () => end(server),
    async start() {
      server = await launch();
    },
    async close() {
      await end(server);
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function launchRedis(args: readonly string[]): Promise<ChildProcess> {
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  server.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const failed = once(server, 'exit').then(() => {
    throw new Error(`redis-server ended:\n${output}`);
  });
  // After the start, the test itself ends Redis.
  failed.catch(() => {});
  while (!output.includes('Ready to accept connections'))
    await Promise.race([once(server.stdout, 'data'), failed]);
  return server;
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill('SIGKILL');
  await ended;
}

/** Sends a command to Redis on a new connection. Returns the answer. */
export async function sayToRedis(redis: TestRedis | undefined, words: string): Promise<string> {
  if (!redis) throw new Error('there is no Redis here');
  const socket = connect(redis.port, '127.0.0.1');
  socket.end(`${words}\r\n`);
  let answer = '';
  socket.on('data', (piece) => {
    answer += piece.toString();
  });
  await once(socket, 'close');
  return answer;
}

/**
 * Returns a free loopback port below the ephemeral range, so that no other process gets it by chance before it
 * is used.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
