import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { WAIT_MS } from './eventually.ts';

/**
 * Starts a server that stays in the foreground, and waits until its output has the text `ready`. Throws if it ends
 * before.
 */
export async function launch(
  program: string,
  args: readonly string[],
  ready: string,
  options: Pick<SpawnOptions, 'cwd' | 'uid' | 'gid'> = {},
): Promise<ChildProcess> {
  const server = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const isReady = new Promise<void>((resolve) => {
    for (const stream of [server.stdout, server.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (!output.includes(ready)) output += text;
        if (output.includes(ready)) resolve();
      });
  });
  const failed = once(server, 'exit').then(() => {
    throw new Error(`${program} ended:\n${output}`);
  });
  // After the start, the test itself ends the server.
  failed.catch(() => {});
  await Promise.race([isReady, failed]);
  return server;
}

/** Ends a program with a signal, by default like a crash, and waits until it has ended. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/**
 * Suspends a program like a hanging machine: its connections are accepted and never answered. Returns when each of its
 * threads is stopped: on a busy machine, SIGSTOP takes effect only later. Throws if it has ended.
 */
export function suspend(child: ChildProcess): void {
  child.kill('SIGSTOP');
  const end = Date.now() + WAIT_MS;
  const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  while (threadStates(child.pid).some((state) => state !== 'T')) {
    if (Date.now() > end) throw new Error(`${child.spawnfile} was not suspended`);
    Atomics.wait(sleeper, 0, 0, 1);
  }
}

/** Returns the state of each thread of a process, as `proc(5)` has it: `T` is stopped. */
function threadStates(pid: number | undefined): string[] {
  const threads = `/proc/${pid}/task`;
  const lines = readdirSync(threads).map((thread) => readFileSync(`${threads}/${thread}/stat`, 'utf8'));
  // The name of the program, in parentheses, may have any character.
  return lines.map((line) => line.slice(line.lastIndexOf(')') + 2, line.lastIndexOf(')') + 3));
}
