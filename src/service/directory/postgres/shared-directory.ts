import { silentLog } from '../../../util/log.ts';
import { openPool } from '../../postgres/connect.ts';
import type { Directory } from '../directory.ts';
import { openPostgresDirectory } from './postgres-directory.ts';

/** Opens the directory in the database at `url` for the time of `work`. Throws `PostgresError`. */
export async function withSharedDirectory<Result>(
  url: string,
  work: (directory: Directory) => Promise<Result>,
): Promise<Result> {
  const pool = openPool(url, silentLog);
  try {
    const { directory, close } = await openPostgresDirectory(pool);
    try {
      return await work(directory);
    } finally {
      await close();
    }
  } finally {
    await pool.end();
  }
}
