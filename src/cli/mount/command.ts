import type { Settings } from '../../config/settings.ts';
import { loadSettings } from '../load-settings.ts';
import { MountError } from './clients.ts';
import { thisMachine } from './machine.ts';
import { type MountOptions, mount } from './mount.ts';
import { unmount } from './unmount.ts';

/** `davgate mount` and `davgate unmount`. Returns the exit code. */
export async function mountCommand(
  command: 'mount' | 'unmount',
  flags: Settings,
  { options, environment }: { readonly options: MountOptions; readonly environment: NodeJS.ProcessEnv },
): Promise<number> {
  const loaded = await loadSettings(flags, environment);
  const work = command === 'mount' ? mount : unmount;
  try {
    for (const line of await work(options, { loaded, machine: thisMachine(environment), environment }))
      console.log(line);
    return 0;
  } catch (error) {
    if (!(error instanceof MountError)) throw error;
    process.stderr.write(`davgate: ${error.message}\n`);
    return 1;
  }
}
