import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ConfigFile, readConfigFile } from '../config/config-file.ts';
import { settingsOfCredentials, withSecretFiles } from '../config/secret-sources.ts';
import { type Settings, settingsOfEnvironment } from '../config/settings.ts';
import { configHome } from '../config/xdg.ts';

/** The settings from all sources. */
export interface LoadedSettings {
  readonly settings: Settings;
  readonly file: ConfigFile | undefined;
}

/** Combines flags, variables, systemd credentials and the configuration file, in this order of precedence. Throws `ConfigError`. */
export async function loadSettings(flags: Settings, environment: NodeJS.ProcessEnv): Promise<LoadedSettings> {
  const variables = withSecretFiles(settingsOfEnvironment(environment));
  const named = merge(withSecretFiles(flags), merge(variables, settingsOfCredentials(environment)));
  const own = defaultConfigFile(environment);
  const path = named.get('config')?.text ?? (existsSync(own) ? own : undefined);
  const file = path === undefined ? undefined : await readConfigFile(path);
  return { settings: merge(named, file?.settings ?? new Map()), file };
}

/** Returns the path of the configuration file that is read without `--config`. */
export function defaultConfigFile(environment: NodeJS.ProcessEnv): string {
  return join(configHome(environment), 'davgate', 'config.json');
}

/** Returns the settings of both; `first` takes precedence. */
function merge(first: Settings, second: Settings): Settings {
  return new Map([...second, ...first]);
}
