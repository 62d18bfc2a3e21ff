#!/usr/bin/env node
import { ConfigError, optionsHelp } from '../config/settings.ts';
import { packageVersion } from '../util/package.ts';
import { hashPasswordCommand } from './hash-password.ts';
import { isStartFailure } from './start-failure.ts';

/** Exit code for settings or an environment that davgate cannot start with. */
const EXIT_UNUSABLE = 2;

const HELP = `davgate makes cloud storage a network drive: a WebDAV server in front of a storage service.

Usage: davgate [serve] [options]       serve the drive
       davgate mount [FOLDER]          mount the drive on this machine (davgate mount --help)
       davgate unmount [FOLDER]        unmount it
       davgate service [options]       the embedded storage service alone (davgate service --help)
       davgate service check [--data]  look for damage in its files (davgate service check --help)
       davgate login [--remove]        connect or disconnect an account of the service (davgate login --help)
       davgate doctor [options]        test the configuration against the live service (davgate doctor --help)
       davgate locks [remove …]        list or remove the locks of clients (davgate locks --help)
       davgate journal [COMMAND]       list and handle pending and lost writes (davgate journal --help)
       davgate hash-password           hash a password, read from standard input, for a configuration file
       davgate --help | --version

Options of serve, each with its variable:
${optionsHelp()}
`;

const HELP_WORDS: ReadonlySet<string> = new Set(['help', '--help', '-h']);
const VERSION_WORDS: ReadonlySet<string> = new Set(['version', '--version', '-V']);

/** Errors of a closed pipe, as in `davgate login | head`, and of a closed terminal. */
const OUTPUT_CLOSED: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

// Running work goes on without output.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (!OUTPUT_CLOSED.has(error.code)) throw error;
});

/** Returns the exit code. */
async function main([command = 'serve', ...rest]: string[]): Promise<number> {
  const args = command.startsWith('-') ? [command, ...rest] : rest;
  // Each command loads its own modules, so that serve does not keep those of the others in memory for months.
  if (command === 'doctor') return (await import('./doctor/doctor.ts')).doctorCommand(rest, process.env);
  if (command === 'locks') return (await import('./locks/locks.ts')).locksCommand(rest, process.env);
  if (command === 'journal') return (await import('./journal/journal.ts')).journalCommand(rest, process.env);
  if (command === 'login') return (await import('./login/login.ts')).loginCommand(rest, process.env);
  if (command === 'mount' || command === 'unmount')
    return (await import('./mount/command.ts')).mountCommand(command, rest, process.env);
  if (command === 'service' && rest[0] === 'check')
    return (await import('./service-check.ts')).serviceCheckCommand(rest.slice(1), process.env);
  if (command === 'service') await (await import('./service.ts')).serviceCommand(rest, process.env);
  else if (command === 'hash-password') await hashPasswordCommand(rest);
  else if (VERSION_WORDS.has(command)) console.log(packageVersion());
  else if (HELP_WORDS.has(command) || args.includes('--help') || args.includes('-h')) console.log(HELP);
  else if (command === 'serve' || command.startsWith('-'))
    await (await import('./serve.ts')).serve(args, process.env);
  else throw new ConfigError(`${command}: no such command; davgate --help lists them`);
  return 0;
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
