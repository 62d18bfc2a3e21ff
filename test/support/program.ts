import { type ChildProcess, spawn } from 'node:child_process';
import { scryptSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from './build.ts';
import { freePort } from './free-port.ts';

/** The password of the user `tester`. */
export const PASSWORD = 'pass word:1';

/** A running process of the built `davgate`. */
export interface Program {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** The value of an `Authorization` header. */
  readonly authorization: string;
  readonly pid: number;
  /** Returns the text written to standard output and standard error. */
  output(): string;
  /** Sends SIGTERM. Resolves with the exit code after the process has drained. */
  stop(): Promise<number | null>;
  /** Resolves with the exit code at the end of the process. */
  ended(): Promise<number | null>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

export interface ProgramOptions {
  readonly dataDirectory: string;
  /** The port to listen on, for a restart that clients follow. The default is a free one. */
  readonly port?: number;
  /** `false` serves without authentication; with `configured` the arguments name the users. */
  readonly login?: boolean | 'configured';
  readonly args?: readonly string[];
  /** Variables beside those of this process. */
  readonly environment?: NodeJS.ProcessEnv;
}

/** Starts `davgate`. Resolves when it is ready. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { dataDirectory, port = await freePort(), login = true, args = [], environment } = options;
  if (login === true) await storePassword(dataDirectory);
  const words = [
    ...['--listen', `127.0.0.1:${port}`, '--data-dir', dataDirectory],
    ...['--cache-dir', join(dataDirectory, 'cache')],
    ...(login === true ? ['--user', 'tester'] : []),
    ...(login === false ? ['--no-auth'] : []),
    ...args,
  ];
  const { child, output } = spawnProgram(words, { ...process.env, ...environment });
  const url = await matchOutput(child, output, /https?:\/\/127\.0\.0\.1:\d+\//);
  return {
    url,
    user: 'tester',
    password: PASSWORD,
    authorization: `Basic ${Buffer.from(`tester:${PASSWORD}`).toString('base64')}`,
    pid: child.pid ?? 0,
    output,
    stop: () => end(child, 'SIGTERM'),
    ended: () => end(child),
    kill: async () => {
      await end(child, 'SIGKILL');
    },
  };
}

/**
 * Stores the password as one that davgate has made up. Such a password has a cheap hash; that of a configured one costs
 * 0.3 s of processor time at the start, and again at the first request.
 */
async function storePassword(dataDirectory: string): Promise<void> {
  await mkdir(dataDirectory, { recursive: true });
  await writeFile(join(dataDirectory, 'password'), PASSWORD, { mode: 0o600 });
}

/**
 * Returns a hash for the `password-hash` of a user in a configuration file. It costs nothing, while davgate hashes a
 * configured password for 0.3 s of processor time.
 */
export function cheapHash(password: string): string {
  const salt = Buffer.alloc(16);
  const key = scryptSync(password, salt, 32, { N: 2, r: 1, p: 1 });
  return `scrypt$2$1$1$${salt.toString('base64url')}$${key.toString('base64url')}`;
}

/** A running process of the built `davgate service`. */
export interface ServiceProgram {
  readonly url: string;
  readonly appKey: string;
  readonly appSecret: string;
  readonly token: string;
  readonly refreshToken: string;
  readonly pid: number;
  output(): string;
  /** Sends SIGTERM. Resolves with the exit code after the process has drained. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

/** Starts `davgate service`. Resolves when it has printed its addresses. */
export async function startServiceProgram(
  dataDirectory: string,
  ...args: readonly string[]
): Promise<ServiceProgram> {
  const words = ['service', '--listen', '127.0.0.1:0', '--data', dataDirectory, ...args];
  const { child, output } = spawnProgram(words);
  await matchOutput(child, output, /to stop\./);
  const [, url = ''] = /The storage service is at +(\S+)/.exec(output()) ?? [];
  const credentials = JSON.parse(await readFile(join(dataDirectory, 'credentials.json'), 'utf8'));
  return {
    url,
    ...(credentials as Pick<ServiceProgram, 'appKey' | 'appSecret' | 'token' | 'refreshToken'>),
    pid: child.pid ?? 0,
    output,
    stop: () => end(child, 'SIGTERM'),
    kill: async () => {
      await end(child, 'SIGKILL');
    },
  };
}

/** Starts `davgate` with these arguments. `output` grows as it writes, and `input` is its standard input. */
export function spawnProgram(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
  input: 'none' | 'written' = 'none',
): { child: ChildProcess; output: () => string } {
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/cli/main.js'), ...args], {
    stdio: [input === 'none' ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: environment,
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return { child, output: () => text };
}

/** Runs `davgate` to its end. */
export async function runProgram(
  args: readonly string[],
  environment?: NodeJS.ProcessEnv,
): Promise<{ code: number | null; output: string }> {
  const { child, output } = spawnProgram(args, environment);
  const [code] = (await once(child, 'close')) as [number | null]; // arguments of 'close'
  return { code, output: output() };
}

/** Makes a data directory for one test file. */
export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'davgate-'));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}

/** Resolves with the match of `pattern` as soon as it is in the output. */
export async function matchOutput(
  child: ChildProcess,
  output: () => string,
  pattern: RegExp,
): Promise<string> {
  for (;;) {
    const match = pattern.exec(output());
    if (match) return match[0];
    const ended = child.exitCode !== null || child.signalCode !== null;
    if (ended) throw new Error(`davgate ended with ${child.exitCode ?? child.signalCode}:\n${output()}`);
    const over = new AbortController();
    const { signal } = over;
    const more = [child.stdout, child.stderr].map((stream) => once(stream ?? child, 'data', { signal }));
    await Promise.race([...more, once(child, 'close', { signal })]);
    // Removes the listener of the promise that lost the race.
    over.abort();
  }
}

/** Waits for the end of a process, after sending `signal` if given. */
async function end(child: ChildProcess, signal?: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const closed = once(child, 'close');
    if (signal) child.kill(signal);
    await closed;
  }
  return child.exitCode;
}
