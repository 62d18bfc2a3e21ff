import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { ListedLock, LockKeeper } from '../../lock-keeper.ts';
import { StateInUse } from '../../state/errors.ts';

/** The locks as the davgate tells them that listens at `socketPath`. Throws `StateInUse` when it does not answer. */
export function askRunningDavgate(socketPath: string, dataDirectory: string): LockKeeper {
  const ask = (method: string, path: string) =>
    new Promise<{ status: number; value: unknown }>((resolve, reject) => {
      const outgoing = request({ socketPath, method, path }, (incoming) => {
        const { statusCode: status = 0 } = incoming;
        text(incoming).then((body) => resolve({ status, value: JSON.parse(body) }), reject);
      });
      // It holds the state, but hears no commands.
      outgoing.once('error', () => reject(new StateInUse(dataDirectory)));
      outgoing.end();
    });
  const checked = ({ status, value }: { readonly status: number; readonly value: unknown }) => {
    if (status !== 200) throw new Error(`the running davgate answered ${status}; its log says why`);
    return value;
  };
  return {
    // It is a davgate, and tells what its lock keeper says.
    locks: async () => checked(await ask('GET', '/locks')) as readonly ListedLock[],
    async removeLocks(choice) {
      const path = `/locks?${new URLSearchParams({ ...choice })}`;
      return checked(await ask('DELETE', path)) as readonly ListedLock[];
    },
  };
}
