import { resolveConfig } from '../config/configuration.ts';
import type { Grant } from '../config/grant.ts';
import { configSchema } from '../config/schema.ts';
import { ConfigError, OPTIONS, type SettingName, type Settings } from '../config/settings.ts';
import { refuseUnsharedFiles } from '../config/sharing.ts';
import { PACKAGE_ROOT } from '../util/package.ts';
import { sizeText } from '../util/size-text.ts';
import { loadSettings } from './load-settings.ts';
import { asPlainText, tableOf } from './table.ts';

interface Output {
  readonly say: (line: string) => void;
  readonly isJson: boolean;
}

/** `davgate config check`: prints all problems of the settings. Returns the exit code. */
export async function checkConfig(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { say, isJson, file }: Output & { readonly file: string | undefined },
): Promise<number> {
  const named = new Map(flags);
  if (file !== undefined) named.set('config', { text: file, origin: 'config check' });
  const { problems, origin } = await examined(named, environment);
  if (isJson) say(JSON.stringify({ ok: problems.length === 0, problems }, undefined, 2));
  else if (problems.length === 0) say(`${origin ?? 'the settings'}: ok`);
  else for (const problem of problems) say(problem);
  return problems.length === 0 ? 0 : 1;
}

/** Returns the problems of the settings, and the file that was read. */
async function examined(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly problems: readonly string[]; readonly origin?: string | undefined }> {
  try {
    const { settings, file } = await loadSettings(flags, environment);
    refuseUnsharedFiles(settings, resolveConfig(settings, file, environment, PACKAGE_ROOT));
    return { problems: [], origin: file?.origin };
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems };
    throw error;
  }
}

/** A setting that is in effect. */
interface ShownSetting {
  readonly setting: string;
  readonly value: string;
  readonly origin: string;
}

/** `davgate config show`: prints the settings that are in effect, and where each comes from. */
export async function showConfig(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { say, isJson }: Output,
): Promise<void> {
  const { settings, file } = await loadSettings(flags, environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  const found: readonly ShownSetting[] = [
    ...shownIn(settings, ''),
    ...defaultsBeside(settings, config),
    ...(file?.drives ?? []).flatMap((drive) => shownIn(drive.settings, `drives.${drive.name}.`)),
    ...(file?.users ?? []).map(({ name, grants }) => ({
      setting: `users.${name}`,
      value: grants.map(grantText).join(', '),
      origin: file?.origin ?? '',
    })),
  ];
  const rows = found.toSorted((one, other) => one.setting.localeCompare(other.setting));
  const cells = rows.map(({ setting, value, origin }) => [setting, asPlainText(value), origin]);
  say(isJson ? JSON.stringify(rows, undefined, 2) : tableOf([['setting', 'value', 'origin'], ...cells]));
}

function grantText({ drive, root = '', isReadOnly, quotaBytes, folders = [] }: Grant): string {
  const quota = quotaBytes === undefined ? '' : ` (quota ${sizeText(quotaBytes)})`;
  const rights = folders.map(({ path, right }) => ` (${path} ${right})`).join('');
  return `${drive}${root}${isReadOnly ? ' (read-only)' : ''}${quota}${rights}`;
}

function shownIn(settings: Settings, prefix: string): readonly ShownSetting[] {
  return [...settings].map(([name, { text, origin }]) => ({
    setting: `${prefix}${name}`,
    value: shownValue(name, text),
    origin,
  }));
}

/** Hides secrets. The address of a Redis may contain a password. */
function shownValue(name: SettingName, text: string): string {
  const row = OPTIONS.find((option) => option.name === name);
  if (row && 'isSecret' in row) return '***';
  return name === 'redis' ? text.replace(/\/\/.*@/, '//***@') : text;
}

function defaultsBeside(
  settings: Settings,
  { dataDirectory, cacheDirectory }: { readonly dataDirectory: string; readonly cacheDirectory: string },
): readonly ShownSetting[] {
  const directories: Readonly<Record<string, string>> = {
    'data-dir': dataDirectory,
    'cache-dir': cacheDirectory,
  };
  return OPTIONS.flatMap((option) => {
    const value = 'default' in option ? option.default : directories[option.name];
    return value === undefined || settings.has(option.name)
      ? []
      : [{ setting: option.name, value, origin: 'default' }];
  });
}

/** `davgate config schema`. */
export function schemaText(): string {
  return JSON.stringify(configSchema(), undefined, 2);
}
