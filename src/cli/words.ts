import { type ParseArgsConfig, parseArgs } from 'node:util';
import { ConfigError } from '../config/settings.ts';

/**
 * The words after `davgate COMMAND` by the command's options. Throws `ConfigError` for a word that the command does not
 * know, and says where its options are listed.
 */
export function wordsOf<Options extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  args: readonly string[],
  options: Options,
  { allowPositionals = false } = {},
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals });
  } catch (error) {
    // What follows tells how to write a word that begins with a dash.
    const reason = error instanceof Error ? error.message.split('. ')[0] : error;
    throw new ConfigError(`${reason}; davgate ${command} --help lists the options`);
  }
}
