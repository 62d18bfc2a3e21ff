#!/usr/bin/env node
import { ConfigError, optionsHelp } from '../settings.ts';
import { hashPasswordCommand } from './hash-password.ts';
import { packageVersion } from './package.ts';
import { serve } from './serve.ts';
import { serviceCommand } from './service.ts';
import { serviceCheckCommand } from './service-check.ts';
import { isStartFailure } from './start-failure.ts';

/** Exit code for a setting or a surrounding that davgate cannot start with. */
const EXIT_UNUSABLE = 2;

const HELP = `davgate makes cloud storage a network drive: a WebDAV server in front of a storage service.

Usage: davgate [serve] [options]     serve the drive
       davgate service [options]     the embedded storage service alone (davgate service --help)
       davgate service check [--data] look for damage in its files (davgate service check --help)
       davgate hash-password         hash a password, read from standard input, for a configuration file
       davgate --help | --version

Options of serve, with the variable that says the same:
${optionsHelp()}
`;

async function main([command = 'serve', ...rest]: string[]): Promise<void> {
  const args = command.startsWith('-') ? [command, ...rest] : rest;
  if (command === 'service' && rest[0] === 'check') {
    process.exitCode = await serviceCheckCommand(rest.slice(1), process.env);
    return;
  }
  if (command === 'service') return serviceCommand(rest, process.env);
  if (command === 'hash-password') return hashPasswordCommand();
  if (command === '--version') return console.log(packageVersion());
  if (args.includes('--help')) return console.log(HELP);
  if (command === 'serve' || command.startsWith('-')) return serve(args, process.env);
  throw new ConfigError(`${command}: no such command; davgate --help lists them`);
}

try {
  await main(process.argv.slice(2));
  // Whatever still hangs about, a socket of a client that does not answer say, must not hold up the end.
  process.exit();
} catch (error) {
  if (!isStartFailure(error)) throw error;
  process.stderr.write(`davgate: ${error.message}\n`);
  process.exit(EXIT_UNUSABLE);
}
