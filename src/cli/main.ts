#!/usr/bin/env node
import { createProgram } from './program/program.ts';
import { isStartFailure } from './start-failure.ts';

/** Exit code for settings or an environment that davgate cannot start with. */
const EXIT_UNUSABLE = 2;

/** Errors of a closed pipe, as in `davgate login | head`, and of a closed terminal. */
const OUTPUT_CLOSED: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

// Running work goes on without output.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (!OUTPUT_CLOSED.has(error.code)) throw error;
});

try {
  const words = process.argv.slice(2);
  const program = await createProgram(
    {
      environment: process.env,
      say: (line) => console.log(line),
      readPassword: async () => (await import('./typed-secret.ts')).readPassword(),
    },
    words,
  );
  const code = await program.execute(words);
  // Open handles, such as the socket of a silent client, must not delay the exit.
  process.exit(code);
} catch (error) {
  if (!isStartFailure(error)) throw error;
  process.stderr.write(`davgate: ${error.message}\n`);
  process.exit(EXIT_UNUSABLE);
}
