import { BadArgument } from './failures.ts';
import { StorageError } from './storage/storage.ts';

const NAMESPACE_PATH = /^ns:([0-9]+)(\/.*)?$/s;

/**
 * The store's address for a path as it came: in `namespace`, without the `ns:` form. The root is `''`.
 * Another account's namespace holds nothing that this one can find.
 */
export function addressOf(path: string, namespace: string, side?: 'from' | 'to'): string {
  const match = NAMESPACE_PATH.exec(path);
  if (!match) return path;
  const [, number, below = ''] = match;
  if (number !== namespace) throw new StorageError({ kind: 'lookup', tag: 'not_found' }, side);
  return below === '/' ? '' : below;
}

/** Likewise, for what can only be done to something inside the root. */
export function itemAddress(path: string, namespace: string, side?: 'from' | 'to'): string {
  const address = addressOf(path, namespace, side);
  if (isRoot(address)) throw new StorageError({ kind: 'lookup', tag: 'malformed_path' }, side);
  return address;
}

/** Likewise, for a destination: nothing can be written into another namespace. */
export function destination(path: string, namespace: string): string {
  const number = NAMESPACE_PATH.exec(path)?.[1];
  if (number !== undefined && number !== namespace)
    throw new StorageError({ kind: 'write', tag: 'no_write_permission' }, 'to');
  return itemAddress(path, namespace, 'to');
}

/** Refuses the root where the service has nothing to say of it (get_metadata, links). */
export function exceptRoot(path: string, namespace: string): string {
  const address = addressOf(path, namespace);
  if (isRoot(address)) throw new BadArgument('path: The root folder is unsupported.');
  return address;
}

function isRoot(address: string): boolean {
  return address === '' || address === '/';
}
