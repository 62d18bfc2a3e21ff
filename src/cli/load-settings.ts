import { type ConfigFile, readConfigFile } from '../config/config-file.ts';
import { settingsOfCredentials, withSecretFiles } from '../config/secret-sources.ts';
import { type Settings, settingsOfEnvironment } from '../config/settings.ts';

/** All that a person has set, wherever it stands. */
export interface LoadedSettings {
  readonly settings: Settings;
  readonly file: ConfigFile | undefined;
}

/** Flags, variables, credentials and the file that one of them names, in this order of weight. Throws `ConfigError`. */
export function loadSettings(flags: Settings, environment: NodeJS.ProcessEnv): LoadedSettings {
  const variables = withSecretFiles(settingsOfEnvironment(environment));
  const named = merge(withSecretFiles(flags), merge(variables, settingsOfCredentials(environment)));
  const path = named.get('config')?.text;
  const file = path === undefined ? undefined : readConfigFile(path);
  return { settings: merge(named, file?.settings ?? new Map()), file };
}

/** The settings of both; where both say something, the first counts. */
function merge(first: Settings, second: Settings): Settings {
  return new Map([...second, ...first]);
}
