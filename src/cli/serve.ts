import { startGateway } from '../app.ts';
import { resolveConfig } from '../config.ts';
import { settingsOfArguments } from './arguments.ts';
import { loadSettings } from './load-settings.ts';
import { terminalLog } from './log.ts';
import { mountHelp } from './mount-help.ts';
import { PACKAGE_ROOT } from './package.ts';
import { untilAskedToStop } from './signals.ts';

/** `davgate [serve]`: serves the drive until it is told to stop; resolves when all is drained. */
export async function serve(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const { settings, file } = loadSettings(settingsOfArguments(args), environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  const gateway = await startGateway(config, terminalLog);
  // Listened for before anybody can read that it serves: who stops it then wants a drain too.
  const stopped = untilAskedToStop();
  console.log(mountHelp(gateway));
  await stopped;
  await gateway.close();
}
