import { OtherOwner } from '../errors.ts';
import { isSameOwner, type Owner, type Owners, shownOwner } from '../owners.ts';
import { textOrNothing } from './answers.ts';
import type { Connection } from './connection.ts';
import { driveStore } from './drive-keys.ts';

/** Owners: one string per drive. Only the first gateway sets it, because others may be using the state. */
export function redisOwners(connection: Connection): Owners {
  const keyFor = (drive: string) => driveStore(connection, drive).key('owner');
  const get = async (drive: string) => {
    const text = textOrNothing(await connection.command('GET', keyFor(drive)));
    return text === undefined ? undefined : ownerOf(text);
  };
  return {
    get,
    async set(drive, owner) {
      const { accountId, email, root } = owner;
      const text = JSON.stringify({ accountId, email, root });
      await connection.command('SET', keyFor(drive), text, 'NX');
      const now = await get(drive);
      if (now && !isSameOwner(now, owner))
        throw new OtherOwner(
          `drive "${drive}" in ${connection.shownUrl} is kept for ${shownOwner(now)}, and this login is of ${shownOwner(owner)}; give one of them a drive name of its own, or the number of another database`,
        );
    },
  };
}

function ownerOf(text: string): Owner {
  return JSON.parse(text); // as `set` wrote it
}
