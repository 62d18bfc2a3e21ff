import type { ListedLock, LockAdmin } from '../../app/lock-admin.ts';
import type { ControlClient } from '../control-client.ts';

/** The locks as the davgate tells them that runs. */
export function askRunningDavgate(client: ControlClient): LockAdmin {
  return {
    // It is a davgate, and tells what its lock keeper says.
    locks: async () => (await client.ask('GET', '/locks')) as readonly ListedLock[],
    async removeLocks(choice) {
      const path = `/locks?${new URLSearchParams({ ...choice })}`;
      return (await client.ask('DELETE', path)) as readonly ListedLock[];
    },
  };
}
