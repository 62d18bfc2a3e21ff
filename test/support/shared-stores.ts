import { join } from 'node:path';
import { inject } from 'vitest';
import type { StoreOptions } from '../../src/service/stores.ts';
import { makeFolder } from '../../src/util/make-folder.ts';
import { newDatabaseAt } from './postgres.ts';

/** The database of each data directory: a service that starts again finds its own. */
const databases = new Map<string, Promise<string>>();

/** Returns where a test's service has its data besides its directory: in PostgreSQL, in the project `postgres`. */
export async function storesBeside(
  dataDirectory: string,
): Promise<Pick<StoreOptions, 'metadata' | 'blocks'>> {
  const administratorUrl = inject('postgres');
  if (administratorUrl === undefined) return {};
  const database = databases.get(dataDirectory) ?? newDatabaseAt(administratorUrl);
  databases.set(dataDirectory, database);
  const folder = join(dataDirectory, 'shared');
  makeFolder(folder);
  return { metadata: await database, blocks: { folder } };
}

/** Returns the database of the service with this data directory; `undefined` if it uses SQLite. */
export async function metadataOf(dataDirectory: string): Promise<string | undefined> {
  return await databases.get(dataDirectory);
}
