#!/usr/bin/env node
import { packageVersion } from '../util/package.ts';
import { plainStart } from './plain-start.ts';
import { isStartFailure } from './start-failure.ts';

/** Exit code for settings or an environment that davgate cannot start with. */
const EXIT_UNUSABLE = 2;

/** Errors of a closed pipe, as in `davgate login | head`, and of a closed terminal. */
const OUTPUT_CLOSED: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

// Running work goes on without output.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (!OUTPUT_CLOSED.has(error.code)) throw error;
});

/** Returns the exit code. */
async function main(words: readonly string[]): Promise<number> {
  const [first, ...others] = words;
  if ((first === '--version' || first === '-V') && others.length === 0) {
    console.log(packageVersion());
    return 0;
  }
  const start = plainStart(words);
  // Each command loads its own modules, so that serve does not keep those of the others in memory for months.
  if (start) {
    await (await import('./serve.ts')).serve(start.settings, process.env, start);
    return 0;
  }
  const { createProgram } = await import('./program/program.ts');
  const deps = {
    environment: process.env,
    say: (line: string) => console.log(line),
    readPassword: async () => (await import('./typed-secret.ts')).readPassword(),
  };
  return (await createProgram(deps, words)).execute(words);
}

try {
  const code = await main(process.argv.slice(2));
  // Open handles, such as the socket of a silent client, must not delay the exit.
  process.exit(code);
} catch (error) {
  if (!isStartFailure(error)) throw error;
  process.stderr.write(`davgate: ${error.message}\n`);
  process.exit(EXIT_UNUSABLE);
}
