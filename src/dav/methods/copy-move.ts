import type { OutgoingHttpHeaders } from 'node:http';
import { FileError } from '../../drive/errors.ts';
import type { Entry, RelocateOptions, Written } from '../../drive/files.ts';
import { keyOf, type Path, ROOT } from '../../util/path.ts';
import { answerEmpty } from '../answers/answer.ts';
import { type Conditions, checkConditions } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { depthOf, destinationOf, mtimeOf, overwriteOf } from '../headers.ts';
import { hrefOf } from '../href.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import type { Context } from '../method.ts';
import { requireParent } from '../parent-folder.ts';

/** RFC 4918 §9.8. */
export async function copy(context: Context): Promise<void> {
  const { drive, path } = context;
  const { to, overwrite, source, target } = await prepare(context);
  const depth =
    source.kind === 'folder' ? depthOf(context.request.headers, ['0', 'infinity'], 'infinity') : '0';
  if (keyOf(path) === keyOf(to)) throw new DavError(403, 'Destination is the resource itself');
  const conditions = await checkConditions(context, source, { path: to, entry: target });
  await checkTarget(context, to, target, overwrite);
  const shallow = source.kind === 'folder' && depth === '0';
  const options = { overwrite, shallow, ...pinned(conditions, source, target) };
  const changes = [{ path: to, tree: true, membership: !target }];
  const done = await withRequestLock(context, conditions, changes, async (held) => {
    const written = await orExists(drive.files.copy(path, to, options));
    await held.endBelow(to);
    return finish(context, to, written);
  });
  answerEmpty(context.response, done.status, done.headers);
}

/** RFC 4918 §9.9. */
export async function move(context: Context): Promise<void> {
  const { drive, path } = context;
  if (path === ROOT) throw new DavError(403, 'the drive itself cannot be moved');
  const { to, overwrite, source, target: found } = await prepare(context);
  if (source.kind === 'folder') depthOf(context.request.headers, ['infinity'], 'infinity');
  if (path === to && source.path === to) throw new DavError(403, 'Destination is the resource itself');
  const isRename = keyOf(path) === keyOf(to);
  const conditions = await checkConditions(context, source, { path: to, entry: found });
  const target = isRename ? undefined : found;
  if (!isRename) await checkTarget(context, to, target, overwrite);
  const options = { overwrite, ...pinned(conditions, source, target) };
  const changes = [
    { path, tree: true, membership: true },
    ...(isRename ? [] : [{ path: to, tree: true, membership: !target }]),
  ];
  const done = await withRequestLock(context, conditions, changes, async (held) => {
    const written = await orExists(drive.files.move(path, to, options));
    // Locks do not travel (§7.5); those of a name that only changed its letter case stay where they are.
    if (!isRename) await Promise.all([held.endWithin(path), held.endBelow(to)]);
    return finish(context, to, written);
  });
  answerEmpty(context.response, done.status, done.headers);
}

async function prepare(context: Context): Promise<{
  readonly to: Path;
  readonly overwrite: boolean;
  readonly source: Entry;
  /** What is at `to` now. */
  readonly target: Entry | undefined;
}> {
  const { request, drive, path, signal } = context;
  const { path: to } = destinationOf(context);
  const overwrite = overwriteOf(request.headers);
  const source = await drive.files.stat(path, signal);
  if (!source) throw new DavError(404, `there is nothing at ${path}`);
  if (to === ROOT) throw new DavError(403, 'the drive itself cannot be replaced');
  return { to, overwrite, source, target: await drive.files.stat(to, signal) };
}

/** What may not be replaced, or has no folder to be in, is refused before locks are looked at. */
async function checkTarget(
  context: Context,
  to: Path,
  target: Entry | undefined,
  overwrite: boolean,
): Promise<void> {
  if (target && !overwrite) throw existsAt(to);
  if (!target) await requireParent(context, to);
}

/** The conditions held a moment ago; the drive holds these revisions against what is there when it does the work. */
function pinned(
  { pinsRevision, pinsDestination }: Conditions,
  source: Entry,
  target: Entry | undefined,
): Pick<RelocateOptions, 'rev' | 'targetRev'> {
  return {
    ...(pinsRevision && source.kind === 'file' && { rev: source.rev }),
    ...(pinsDestination && target?.kind === 'file' && { targetRev: target.rev }),
  };
}

function existsAt(to: Path): DavError {
  return new DavError(412, `there is something at ${to} already, and Overwrite is F`);
}

/** Somebody may have been quicker than our look. */
async function orExists(outcome: Promise<Written>): Promise<Written> {
  try {
    return await outcome;
  } catch (error) {
    if (error instanceof FileError && error.fault === 'exists') throw new DavError(412, error.message);
    throw error;
  }
}

interface Done {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
}

/** What is left to do when the copy is there, and how it is answered. */
async function finish(context: Context, to: Path, { entry, created }: Written): Promise<Done> {
  const headers: OutgoingHttpHeaders = { ...(await setTime(context, entry)) };
  if (created) headers['Location'] = hrefOf(to, entry.kind === 'folder');
  return { status: created ? 201 : 204, headers };
}

/** rclone sends the source's time along, and sets it in another request unless the answer says `accepted`. */
async function setTime(context: Context, entry: Entry): Promise<OutgoingHttpHeaders> {
  const modifiedMs = mtimeOf(context.request.headers);
  if (modifiedMs === undefined || entry.kind !== 'file') return {};
  try {
    await context.drive.files.setModified(entry.path, modifiedMs);
    return { 'X-OC-Mtime': 'accepted' };
  } catch (error) {
    // The copy itself is done, and this may be asked for again.
    context.log.warn('the time of a copy could not be set', { reason: String(error) });
    return {};
  }
}
