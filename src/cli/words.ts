import { type ParseArgsConfig, parseArgs } from 'node:util';
import { ConfigError } from '../config/settings.ts';

/** Parses the words after `davgate COMMAND` by the command's options. Throws `ConfigError` for an unknown option. */
export function wordsOf<Options extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  args: readonly string[],
  options: Options,
  { allowPositionals = false } = {},
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals });
  } catch (error) {
    // Node's second sentence explains how to write a word that begins with a dash.
    const reason = error instanceof Error ? error.message.split('. ')[0] : error;
    throw new ConfigError(`${reason}; davgate ${command} --help lists the options`);
  }
}
