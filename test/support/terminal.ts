import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from './build.ts';
import { matchOutput } from './program.ts';

/** The built `davgate` on a terminal of its own. */
export interface TerminalProgram {
  /** What a person sees, the terminal's echo of what is typed included. */
  output(): string;
  /** Resolves with what `pattern` finds on the screen, as soon as it is there. */
  shows(pattern: RegExp): Promise<string>;
  type(text: string): void;
  /** Closes the terminal, as closing its window does. */
  close(): void;
  /** Resolves with the exit code. */
  ended(): Promise<number | null>;
}

/** Runs `davgate` on a pseudo-terminal, which util-linux's `script` makes. */
export function onTerminal(args: readonly string[]): TerminalProgram {
  const words = [process.execPath, join(PROJECT_ROOT, 'dist/cli/main.js'), ...args];
  // `script` hands the line to $SHELL, or to sh: one that stays beside davgate would end at Ctrl+C in its place.
  const line = `exec ${words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')}`;
  const child: ChildProcess = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
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
