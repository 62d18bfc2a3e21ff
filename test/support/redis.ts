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
  /** Stands still, as a machine that hangs: takes connections and answers nothing. */
  pause(): void;
  resume(): void;
  /** SIGKILL, as a machine that crashes. */
  kill(): Promise<void>;
  /** Again, on the same port and with the same data. */
  start(): Promise<void>;
  /** Ends it and removes its data. */
  close(): Promise<void>;
}

/** A real Redis on a free port of loopback; what it acknowledged is on disk, unless `settings` say otherwise. */
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
  // After the start an end is what the test wants.
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

/** Says words to Redis on a connection of its own; its answer. */
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
 * A port of loopback that nobody has. Nobody else is given it by chance before it is used: a system gives higher ones to
 * those who ask for any, and to those who connect.
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
