import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { ConfigError } from '../config/settings.ts';

/** Exit code of a program ended by Ctrl+C, as in shells. */
const EXIT_INTERRUPTED = 130;

/**
 * Returns the first line of standard input; `undefined` without one. A terminal hides the line and asks for it twice.
 * Throws `ConfigError` if the two differ.
 */
export async function readSecret(): Promise<string | undefined> {
  if (!process.stdin.isTTY) return firstLine();
  const terminal = hiddenLines();
  try {
    const secret = await terminal.ask('Password: ');
    if (secret === undefined || secret === '') return secret;
    if ((await terminal.ask('The same again: ')) === secret) return secret;
    throw new ConfigError('the two passwords differ; try again');
  } finally {
    terminal.close();
  }
}

async function firstLine(): Promise<string | undefined> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  return undefined;
}

/** Reads lines from the terminal with readline's editing, without echo. */
function hiddenLines() {
  const output = new Writable({ write: (_echo, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
  lines.on('SIGINT', () => {
    lines.close();
    process.stderr.write('\n');
    process.exit(EXIT_INTERRUPTED);
  });
  return {
    /** `undefined`: the input has ended. */
    async ask(prompt: string): Promise<string | undefined> {
      const typed = new Promise<string | undefined>((resolve) => {
        lines.once('line', resolve);
        lines.once('close', () => resolve(undefined));
      });
      process.stderr.write(prompt);
      const line = await typed;
      process.stderr.write('\n');
      return line;
    },
    close: () => lines.close(),
  };
}
