import type { OutgoingHttpHeaders } from 'node:http';
import { FileError } from '../../drive/errors.ts';
import type { Entry, RelocateOptions, Written } from '../../drive/files.ts';
import { keyOf, type Path, ROOT } from '../../util/path.ts';
import { checkConditions, type MetConditions, requireParent } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import { parseSeconds } from '../properties/property-times.ts';
import { depthOf, destinationOf, overwriteOf } from '../request-headers.ts';
import { hrefOf } from '../resource-url.ts';

/** COPY (RFC 4918 §9.8). */
export async function copy(context: Context): Promise<void> {
  const { drive, path } = context;
  const { to, overwrite, source, target } = await prepare(context);
  const depth =
    source.kind === 'folder' ? depthOf(context.request.headers, ['0', 'infinity'], 'infinity') : '0';
  if (keyOf(path) === keyOf(to)) throw sameResource();
  const conditions = await checkConditions(context, source, { path: to, entry: target });
  await checkTarget(context, to, target, overwrite);
  const shallow = source.kind === 'folder' && depth === '0';
  const options = { overwrite, shallow, ...pinnedRevisions(conditions, source, target) };
  const changes = [{ path: to, tree: true, membership: !target }];
  const answer = await withRequestLock(context, conditions, changes, async (lock) => {
    const written = await failsIfExists(drive.files.copy(path, to, options));
    await lock.endBelow(to);
    return answerFor(context, to, written);
  });
  await context.exchange.answer(answer);
}

/** MOVE (RFC 4918 §9.9). */
export async function move(context: Context): Promise<void> {
  const { drive, path } = context;
  if (path === ROOT) throw new DavError(403, 'the root of the drive cannot be moved');
  const { to, overwrite, source, target: found } = await prepare(context);
  if (source.kind === 'folder') depthOf(context.request.headers, ['infinity'], 'infinity');
  if (path === to && source.path === to) throw sameResource();
  const isRename = keyOf(path) === keyOf(to);
  const conditions = await checkConditions(context, source, { path: to, entry: found });
  const target = isRename ? undefined : found;
  if (!isRename) await checkTarget(context, to, target, overwrite);
  const options = { overwrite, ...pinnedRevisions(conditions, source, target) };
  const changes = [
    { path, tree: true, membership: true },
    ...(isRename ? [] : [{ path: to, tree: true, membership: !target }]),
  ];
  const answer = await withRequestLock(context, conditions, changes, async (lock) => {
    const written = await failsIfExists(drive.files.move(path, to, options));
    // A lock does not move with its resource (§7.5); after a change of letter case it stays in place.
    if (!isRename) await Promise.all([lock.endWithin(path), lock.endBelow(to)]);
    return answerFor(context, to, written);
  });
  await context.exchange.answer(answer);
}

async function prepare(context: Context): Promise<{
  readonly to: Path;
  readonly overwrite: boolean;
  readonly source: Entry;
  /** The resource at `to`, if there is one. */
  readonly target: Entry | undefined;
}> {
  const { request, drive, path, exchange } = context;
  const { path: to } = destinationOf(context.exchange);
  const overwrite = overwriteOf(request.headers);
  const source = await drive.files.stat(path, exchange.signal);
  if (!source) throw new DavError(404, `${path} does not exist`);
  if (to === ROOT)
    throw new DavError(403, 'the root of the drive cannot be replaced; name a path below it in Destination');
  return { to, overwrite, source, target: await drive.files.stat(to, exchange.signal) };
}

function sameResource(): DavError {
  return new DavError(403, 'Destination is the resource itself; name another path');
}

/** Checks Overwrite and the parent before any locks, so that these errors take precedence. */
async function checkTarget(
  context: Context,
  to: Path,
  target: Entry | undefined,
  overwrite: boolean,
): Promise<void> {
  if (target && !overwrite)
    throw new DavError(412, `${to} already exists, and Overwrite is F; send Overwrite: T to replace it`);
  if (!target) await requireParent(context, to);
}

/** Returns the revisions that the drive checks again when it copies or moves: the conditions were met a moment ago. */
function pinnedRevisions(
  { pinsRevision, pinsDestination }: MetConditions,
  source: Entry,
  target: Entry | undefined,
): Pick<RelocateOptions, 'rev' | 'targetRev'> {
  return {
    ...(pinsRevision && source.kind === 'file' && { rev: source.rev }),
    ...(pinsDestination && target?.kind === 'file' && { targetRev: target.rev }),
  };
}

/** Maps `exists` to 412: another client created the destination after the check. */
async function failsIfExists(outcome: Promise<Written>): Promise<Written> {
  try {
    return await outcome;
  } catch (error) {
    if (error instanceof FileError && error.fault === 'exists') throw new DavError(412, error.message);
    throw error;
  }
}

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: undefined;
}

/** Sets the modification time that the request asks for, and returns the answer. */
async function answerFor(context: Context, to: Path, { entry, created }: Written): Promise<Answer> {
  const headers: OutgoingHttpHeaders = { ...(await setTime(context, entry)) };
  if (created) headers['Location'] = hrefOf(context.exchange, to, entry.kind === 'folder');
  return { status: created ? 201 : 204, headers, body: undefined };
}

/** rclone sends the source's time, and sets it with another request unless the answer says `accepted`. */
async function setTime(context: Context, entry: Entry): Promise<OutgoingHttpHeaders> {
  const modifiedMs = parseSeconds(String(context.request.headers['x-oc-mtime'] ?? ''));
  if (modifiedMs === undefined || entry.kind !== 'file') return {};
  try {
    await context.drive.files.setModified(entry.path, modifiedMs);
    return { 'X-OC-Mtime': 'accepted' };
  } catch (error) {
    // The copy exists, and the client can set the time again.
    context.log.warn('cannot set the modification time of a copy', { reason: String(error) });
    return {};
  }
}
