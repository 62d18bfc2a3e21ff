import type { ListedLock, LockAdmin } from '../../app/lock-admin.ts';
import type { ControlClient } from '../control-client.ts';

/** Returns a lock admin that passes each call to the running davgate. */
export function askRunningDavgate(client: ControlClient): LockAdmin {
  return {
    // The casts: the other end is davgate, and answers with the results of its own `LockAdmin`.
    locks: async () => (await client.ask('GET', '/locks')) as readonly ListedLock[],
    async removeLocks(choice) {
      const path = `/locks?${new URLSearchParams({ ...choice })}`;
      return (await client.ask('DELETE', path)) as readonly ListedLock[];
    },
  };
}
