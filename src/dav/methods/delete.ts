import { ROOT } from '../../util/path.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import { depthOf } from '../request.ts';

/** DELETE (RFC 4918 §9.6): removes a file, or a folder with everything below it, or nothing at all. */
export async function remove(context: Context): Promise<void> {
  const { drive, path, principal, request, failedPuts } = context;
  if (path === ROOT) throw new DavError(403, 'the root of the drive cannot be deleted');
  const entry = await drive.files.stat(path, context.signal);
  if (!entry) throw new DavError(404, `${path} does not exist`);
  if (entry.kind === 'folder') depthOf(request.headers, ['infinity'], 'infinity');
  const conditions = await checkConditions(context, entry);
  const pinned = entry.kind === 'file' && conditions.pinsRevision ? { rev: entry.rev } : {};
  await withRequestLock(context, conditions, [{ path, tree: true, membership: true }], async (lock) => {
    await drive.files.remove(path, { ...pinned, recoverable: failedPuts.has(principal, path) });
    await lock.endWithin(path);
  });
  await context.exchange.answer({ status: 204, headers: {}, body: undefined });
}
