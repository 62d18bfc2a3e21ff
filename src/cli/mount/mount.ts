import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../config/settings.ts';
import { makeFolder } from '../../util/make-folder.ts';
import type { LoadedSettings } from '../load-settings.ts';
import { CLIENTS, type MountClient, MountError, nothingInstalled } from './clients.ts';
import type { Machine } from './machine.ts';
import { addressOfDrive, loginFor, refuseUnreachable } from './target.ts';

/** Arguments of `davgate mount` and `davgate unmount`. */
export interface MountOptions {
  readonly folder?: string | undefined;
  /** The drive of a davgate elsewhere. */
  readonly url?: string | undefined;
  /** The name of the client to use. */
  readonly client?: string | undefined;
}

/** Settings and machine that mounting depends on. */
export interface MountDeps {
  readonly loaded: LoadedSettings;
  readonly machine: Machine;
  readonly environment: NodeJS.ProcessEnv;
}

/** Mounts the drive. Returns lines for the person. Throws `MountError`, `ConfigError`. */
export async function mount(
  options: MountOptions,
  { loaded, machine, environment }: MountDeps,
): Promise<readonly string[]> {
  const client = clientFor(options, machine);
  const url = await addressOfDrive(options.url, loaded, environment);
  await refuseUnreachable(url);
  const drive = { url, login: await loginFor(options.url, loaded, environment) };
  const folder = placeOf(options, machine);
  if (!client.choosesPlace && machine.platform !== 'win32') makeFolder(folder);
  const said = await client.mount(drive, folder, machine);
  return [said, `davgate unmount${options.folder === undefined ? '' : ` ${options.folder}`} unmounts it.`];
}

function clientFor({ client: wanted, folder }: MountOptions, machine: Machine): MountClient {
  const here = CLIENTS.filter(({ platform }) => platform === machine.platform);
  const named = here.filter(({ name }) => wanted === undefined || name === wanted);
  if (named.length === 0)
    throw new ConfigError(`--with: "${wanted}" is not one of ${here.map(({ name }) => name).join(', ')}`);
  const fitting = named.filter(({ choosesPlace }) => folder === undefined || !choosesPlace);
  if (fitting.length === 0)
    throw new ConfigError(`--with: ${wanted} chooses the place itself; leave out ${folder}`);
  const usable = fitting.find((client) => client.isUsable(machine));
  if (!usable) throw new MountError(nothingInstalled(wanted, machine));
  return usable;
}

/** Returns the place of the drive: a folder as the system names it, or on Windows a letter. */
export function placeOf({ folder }: MountOptions, { platform, home }: Machine): string {
  if (platform === 'win32') return folder ?? '*';
  const path = folder === undefined ? resolve(home, 'drive') : resolve(folder);
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
