import { type Gateway, startGateway } from '../app.ts';
import type { MadeUpPassword } from '../config/password-file.ts';
import { type Config, resolveConfig } from '../config.ts';
import { settingsOfArguments } from './arguments.ts';
import { loadSettings } from './load-settings.ts';
import { terminalLog } from './log.ts';
import { type Entry, mountHelp } from './mount-help.ts';
import { PACKAGE_ROOT } from './package.ts';
import { namesOfCertificate, urlsForOthers } from './reachable.ts';
import { untilAskedToStop } from './signals.ts';
import { startWarnings } from './start-warnings.ts';

/** `davgate [serve]`: serves the drive until it is told to stop; resolves when all is drained. */
export async function serve(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const flags = settingsOfArguments(args);
  const { settings, file } = loadSettings(flags, environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  const gateway = await startGateway(config, terminalLog);
  // Listened for before anybody can read that it serves: who stops it then wants a drain too.
  const stopped = untilAskedToStop();
  for (const warning of startWarnings(flags, config)) terminalLog.warn(warning);
  console.log(mountHelp({ ...placesOf(config, gateway), entry: entryOf(config, gateway, file?.origin) }));
  await stopped;
  await gateway.close();
}

function placesOf({ listen, tls }: Config, { url }: Gateway) {
  return {
    url,
    otherUrls: urlsForOthers(listen.host, url),
    certificateNames: tls ? namesOfCertificate(tls.certFile, url) : [],
  };
}

function entryOf({ users, drives }: Config, { madeUpPassword }: Gateway, file: string | undefined): Entry {
  const [sole] = users ?? [];
  if (!users || !sole) return { kind: 'open' };
  if (sole.password === undefined && madeUpPassword)
    return { kind: 'user', name: sole.name, password: passwordText(madeUpPassword) };
  const isOfFile = file !== undefined && (users.length > 1 || sole.passwordHash !== undefined);
  if (isOfFile) return { kind: 'table', users: users.length, drives: drives.length, file };
  return { kind: 'user', name: sole.name, password: '(the one you set)' };
}

/** Shown once, and to a person alone: standard output may be the journal, or the log of a container. */
function passwordText({ text, file, isNew }: MadeUpPassword): string {
  return isNew && process.stdout.isTTY ? `${text}   (kept in ${file})` : `in ${file}`;
}
