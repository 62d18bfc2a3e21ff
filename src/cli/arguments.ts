import { type ParseArgsConfig, parseArgs } from 'node:util';
import { ConfigError, OPTIONS, type Setting, type SettingName, type Settings } from '../config/settings.ts';

/** Returns the settings on a command line, `--name value` or `--name=value`. Throws `ConfigError` for anything else. */
export function settingsOfArguments(args: readonly string[]): Settings {
  const settings = new Map<SettingName, Setting>();
  for (let index = 0; index < args.length; index++) {
    const word = args[index] ?? '';
    const [flag = '', ...rest] = word.split('=');
    const option = OPTIONS.find((candidate) => `--${candidate.name}` === flag && !('flag' in candidate));
    if (!option) throw new ConfigError(unknownFlag(flag));
    if (settings.has(option.name)) throw new ConfigError(`${flag}: given twice; give it once`);
    if (!('value' in option)) {
      settings.set(option.name, { text: rest.length > 0 ? rest.join('=') : 'true', origin: flag });
      continue;
    }
    const text = rest.length > 0 ? rest.join('=') : args[++index];
    if (text === undefined || text === '')
      throw new ConfigError(`${flag}: a value is missing; write ${flag} ${option.value}`);
    settings.set(option.name, { text, origin: flag });
  }
  return settings;
}

function unknownFlag(flag: string): string {
  const secret = OPTIONS.find((option) => `--${option.name}` === flag);
  if (secret)
    return `${flag}: command lines are public; use the variable ${secret.variable} or a file for --config`;
  return `${flag}: no such option; davgate --help lists them`;
}

/** Parses the options of `davgate COMMAND`. Throws `ConfigError` for an unknown option. */
export function optionsOf<Options extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  args: readonly string[],
  options: Options,
  { allowPositionals = false } = {},
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals });
  } catch (error) {
    // Node's second sentence explains how to write an argument that begins with a dash.
    const reason = error instanceof Error ? error.message.split('. ')[0] : error;
    throw new ConfigError(`${reason}; davgate ${command} --help lists the options`);
  }
}
