import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { end } from './launched.ts';

/** Length of the end of a daemon's output that an error shows, in characters. */
const SHOWN = 4000;

/**
 * Makes a directory for the files of a server. It is on a disk, while the other temporary files of the tests may be in
 * memory: Ceph and Swift need direct input and output, and extended attributes, which not every tmpfs has.
 */
export function diskDirectory(name: string): Promise<string> {
  return mkdtemp(join('/var/tmp', `davgate-${name}-`));
}

/** The daemons of one server, and the directory that has all their files. */
export class Daemons {
  readonly #directory: string;
  readonly #running = new Map<string, ChildProcess>();
  /** Each rejects when its daemon ends. */
  #failures: Promise<never>[] = [];

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Starts a program that stays in the foreground. */
  start(program: string, args: readonly string[]): void {
    const child = spawn(program, args, { cwd: this.#directory, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-SHOWN);
      });
    const failed = once(child, 'close').then(() => {
      throw new Error(`${program} ended with ${child.exitCode ?? child.signalCode}:\n${output}`);
    });
    // After the start, the test itself ends the daemon.
    failed.catch(() => {});
    this.#running.set(program, child);
    this.#failures.push(failed);
  }

  /** Waits until HTTP requests to a port of 127.0.0.1 are answered. Throws if a daemon ends before. */
  async answer(port: number): Promise<void> {
    const request = () => fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
    const answered = eventually(async () => void (await (await request()).arrayBuffer()), 200);
    await Promise.race([answered, ...this.#failures]);
  }

  /** Returns the process that runs `program`. Throws if none was started. */
  get(program: string): ChildProcess {
    const child = this.#running.get(program);
    if (!child) throw new Error(`${program} does not run`);
    return child;
  }

  /** Ends all daemons with SIGKILL. */
  async kill(): Promise<void> {
    const running = [...this.#running.values()];
    this.#running.clear();
    this.#failures = [];
    await Promise.all(running.map((child) => end(child)));
  }

  /** Ends all daemons, and removes their files. */
  async close(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }
}
