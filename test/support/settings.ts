import { CliCommand } from '../../src/cli/program/cli-command.ts';
import type { Settings } from '../../src/config/settings.ts';

/** Returns the settings on a command line of `davgate serve`. */
export function settingsOfArguments(args: readonly string[]): Settings {
  const command = new CliCommand('serve', () => undefined).takeSettings('all');
  command.parse(args, { from: 'user' });
  return command.settings;
}
