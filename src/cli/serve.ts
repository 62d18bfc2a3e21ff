import { startGateway } from '../app.ts';
import { resolveConfig } from '../config.ts';
import { readConfigFile } from '../config-file.ts';
import { type Settings, settingsOfEnvironment } from '../settings.ts';
import { settingsOfArguments } from './arguments.ts';
import { terminalLog } from './log.ts';
import { mountHelp } from './mount-help.ts';
import { PACKAGE_ROOT } from './package.ts';
import { untilAskedToStop } from './signals.ts';

/** `davgate [serve]`: serves the drive until it is told to stop; resolves when all is drained. */
export async function serve(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const named = merge(settingsOfArguments(args), settingsOfEnvironment(environment));
  const path = named.get('config')?.text;
  const file = path === undefined ? undefined : readConfigFile(path);
  const settings = merge(named, file?.settings ?? new Map());
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  const gateway = await startGateway(config, terminalLog);
  console.log(mountHelp(gateway));
  await untilAskedToStop();
  await gateway.close();
}

/** The settings of both; where both say something, the first counts. */
function merge(first: Settings, second: Settings): Settings {
  return new Map([...second, ...first]);
}
