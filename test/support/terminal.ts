import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from './build.ts';
import { matchOutput } from './program.ts';

/** A process of the built `davgate` on a pseudo-terminal. */
export interface TerminalProgram {
  /** Returns the screen's text, with the echo of typed text. */
  output(): string;
  /** Resolves with the match of `pattern` as soon as it is on the screen. */
  shows(pattern: RegExp): Promise<string>;
  type(text: string): void;
  /** Closes the terminal, like closing its window. */
  close(): void;
  /** Resolves with the exit code. */
  ended(): Promise<number | null>;
}

/** Runs `davgate` on a pseudo-terminal of util-linux's `script`. */
export function onTerminal(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): TerminalProgram {
  const words = [process.execPath, join(PROJECT_ROOT, 'dist/cli/main.js'), ...args];
  // `script` runs the line in a shell. Without exec the shell, not davgate, would end at Ctrl+C.
  const line = `exec ${words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')}`;
  const child: ChildProcess = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: environment,
  });
  let screen = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      screen += chunk;
    });
  const closed = once(child, 'close');
  return {
    output: () => screen,
    shows: (pattern) => matchOutput(child, () => screen, pattern),
    type: (text) => void child.stdin?.write(text),
    close: () => void child.kill('SIGKILL'),
    async ended() {
      await closed;
      return child.exitCode;
    },
  };
}
