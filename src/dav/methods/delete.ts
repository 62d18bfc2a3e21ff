import { ROOT } from '../../util/path.ts';
import { answerEmpty } from '../answers/answer.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { depthOf } from '../headers.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import type { Context } from '../method.ts';

/** RFC 4918 §9.6: a file, or a folder with all below it, or nothing at all. */
export async function remove(context: Context): Promise<void> {
  const { drive, path, principal, request, failedPuts } = context;
  if (path === ROOT) throw new DavError(403, 'the drive itself cannot be deleted');
  const entry = await drive.files.stat(path, context.signal);
  if (!entry) throw new DavError(404, `there is nothing at ${path}`);
  if (entry.kind === 'folder') depthOf(request.headers, ['infinity'], 'infinity');
  const conditions = await checkConditions(context, entry);
  const meant = entry.kind === 'file' && conditions.pinsRevision ? { rev: entry.rev } : {};
  await withRequestLock(context, conditions, [{ path, tree: true, membership: true }], async (held) => {
    await drive.files.remove(path, { ...meant, recoverable: failedPuts.has(principal, path) });
    await held.endWithin(path);
  });
  answerEmpty(context.response, 204);
}
