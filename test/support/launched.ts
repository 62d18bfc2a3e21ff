import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';

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
