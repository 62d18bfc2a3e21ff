import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../util/make-folder.ts';
import { writeSecret } from '../util/secret-file.ts';

const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * Returns the id of this gateway among those that share a Redis. It is kept in the data directory, so that a gateway that was
 * killed finishes after its restart what it had begun.
 */
export async function gatewayIdIn(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, 'gateway-id');
  const known = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  if (ID.test(known)) return known;
  const id = randomUUID();
  await makeFolder(dataDirectory);
  await writeSecret(file, id);
  return id;
}
