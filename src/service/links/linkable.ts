import { exceptRoot } from '../addresses.ts';
import type { Caller, Rooms } from '../route.ts';
import { StorageError, type Stored } from '../storage/storage.ts';
import { itemOf } from './sharing.ts';

/** The caller's item that a link to `path` leads to: what is there now. A path that names an old revision means the file as it is today: that is what a link shows. */
export function itemAt(rooms: Rooms, { account }: Caller, path: string): Stored {
  const named = rooms.storage.stat(account.namespace, exceptRoot(path, account.namespace), false);
  const item = named.kind === 'deleted' ? undefined : itemOf(rooms, account, named.id);
  if (!item) throw new StorageError({ kind: 'lookup', tag: 'not_found' });
  return item;
}

/** The folders that hold the item, the nearest first. */
export function foldersAbove(rooms: Rooms, { account }: Caller, item: Stored): Stored[] {
  const names = item.pathLower.split('/').slice(1, -1);
  return names.flatMap((_, index) => {
    const path = `/${names.slice(0, names.length - index).join('/')}`;
    return itemOf(rooms, account, path) ?? [];
  });
}
