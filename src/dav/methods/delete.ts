import type { IncomingHttpHeaders } from 'node:http';
import { ROOT } from '../../util/path.ts';
import { clientOf } from '../clients.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import type { Context, Method } from '../context.ts';
import { DavError } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import { depthOf } from '../request-headers.ts';
import type { FailedPuts } from './failed-puts.ts';

/** The preference (RFC 7240) of a client that wants to be able to undo the deletion, as the web application does. */
const RECOVERABLE = 'recoverable';

/** Creates DELETE (RFC 4918 §9.6), which removes a file, or a folder with everything below it, or nothing at all. */
export function createDelete(failedPuts: FailedPuts): Method {
  return (context) => remove(context, failedPuts);
}

async function remove(context: Context, failedPuts: FailedPuts): Promise<void> {
  const { drive, path, principal, request } = context;
  if (path === ROOT) throw new DavError(403, 'the root of the drive cannot be deleted');
  const entry = await drive.files.stat(path, context.exchange.signal);
  if (!entry) throw new DavError(404, `${path} does not exist`);
  if (entry.kind === 'folder') depthOf(request.headers, ['infinity'], 'infinity');
  const conditions = await checkConditions(context, entry);
  const pinned = entry.kind === 'file' && conditions.pinsRevision ? { rev: entry.rev } : {};
  const isPreferred = prefersRecoverable(request.headers);
  await withRequestLock(context, conditions, [{ path, tree: true, membership: true }], async (lock) => {
    const recoverable =
      isPreferred ||
      failedPuts.has(principal, path) ||
      (clientOf(request).deletesAfterFailedPut && !knowsAll(context, failedPuts));
    await drive.files.remove(path, { ...pinned, recoverable });
    await lock.endWithin(path);
  });
  const headers = isPreferred ? { 'Preference-Applied': RECOVERABLE } : {};
  await context.exchange.answer({ status: 204, headers, body: undefined });
}

/** Whether no PUT can have failed without this process knowing it: at another gateway, or before the last start. */
function knowsAll({ drive }: Context, failedPuts: FailedPuts): boolean {
  return drive.catchUp === undefined && failedPuts.coversAll;
}

function prefersRecoverable({ prefer = '' }: IncomingHttpHeaders): boolean {
  const preferences = String(prefer).split(',');
  return preferences.some((preference) => preference.trim().toLowerCase() === RECOVERABLE);
}
