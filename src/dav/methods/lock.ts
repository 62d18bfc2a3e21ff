import type { Entry } from '../../drive/files.ts';
import {
  type Claim,
  LOCKS_OF_USER_MAX,
  LOCKS_ON_RESOURCE_MAX,
  type Lock,
  type LocksFull,
  type RunningClaim,
} from '../../state/locks.ts';
import { isWithin, keyOf, parentOf } from '../../util/path.ts';
import { answerXml } from '../answers/answer.ts';
import { answerMultistatus, multistatusBody, responseXml, statusLine } from '../answers/multistatus.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { depthOf, lockTimeoutSeconds } from '../headers.ts';
import { hrefOf } from '../href.ts';
import { ClaimWait } from '../locks/claim-wait.ts';
import { lockedHref, withRequestLock } from '../locks/request-lock.ts';
import { lockDiscoveryXml, parseLockInfo } from '../locks/xml.ts';
import type { Context } from '../method.ts';
import { requireParent } from '../parent-folder.ts';
import type { XmlElement } from '../xml/element.ts';

/** RFC 4918 §9.10: takes a lock, or with an empty body refreshes one. */
export async function lock(context: Context): Promise<void> {
  const root = await context.xml.read(context.body);
  if (root) await take(context, root);
  else await refresh(context);
}

type Attempt =
  | { readonly taken: Lock; readonly created: boolean }
  | { readonly conflict: Lock }
  | { readonly claim: RunningClaim };

/** A request that is changing the resource is waited for; then all is looked at again, as it may be another now. */
async function take(context: Context, root: XmlElement): Promise<void> {
  const wanted = wantedLock(context, root);
  const wait = new ClaimWait(context);
  try {
    for (;;) {
      // A lock of a new name writes an empty file there.
      const entry = await context.drive.files.statForWrite(context.path, { isPinned: false }, context.signal);
      const attempt = await attemptAt(context, entry, wanted);
      if ('taken' in attempt)
        return await answerLocks(context, attempt.created ? 201 : 200, attempt.taken, entry);
      if ('conflict' in attempt) return await refuse(context, entry, attempt.conflict, 'is locked already');
      if (!(await wait.until(attempt.claim.id)))
        return await refuse(context, entry, attempt.claim, 'is being changed by a request; try again later');
    }
  } finally {
    wait.end();
  }
}

function wantedLock({ path, principal, request, clock, randomUuid }: Context, body: XmlElement): Lock {
  const { scope, ownerXml } = parseLockInfo(body);
  const depth = depthOf(request.headers, ['0', 'infinity'], 'infinity');
  const timeoutSeconds = lockTimeoutSeconds(request.headers);
  const token = `urn:uuid:${randomUuid()}`;
  const expiresMs = clock.now() + timeoutSeconds * 1000;
  return { token, root: path, scope, depth, ownerXml, principal, timeoutSeconds, expiresMs };
}

async function attemptAt(context: Context, entry: Entry | undefined, wanted: Lock): Promise<Attempt> {
  const conditions = await checkConditions(context, entry);
  if (entry) return create(context, entry, wanted);
  const { path, namesCollection } = context;
  if (namesCollection)
    throw new DavError(
      409,
      'LOCK makes a file where nothing is, and this name ends with a slash; use MKCOL first',
    );
  await requireParent(context, path);
  // Where nothing is, an empty file will be (§7.3): that changes its folder. An exclusive lock that covers the new
  // name as well is the conflict that `create` will find.
  const changes = [{ path: parentOf(path) }];
  const concerns = ({ depth, scope }: Lock) => depth === '0' || scope === 'shared';
  return withRequestLock(context, conditions, changes, () => create(context, entry, wanted), { concerns });
}

async function create(context: Context, entry: Entry | undefined, wanted: Lock): Promise<Attempt> {
  const { drive, clock } = context;
  const taken = await drive.state.locks.create(clock.now(), wanted);
  if ('full' in taken) throw tooMany(context, taken.full);
  if (!('token' in taken)) return taken;
  return { taken, created: await makeFile(context, entry, taken) };
}

/** 507 and not 423: no other lock is in the way, and none of those that are there would let this one in. */
function tooMany({ path }: Context, full: LocksFull): DavError {
  return new DavError(
    507,
    full === 'resource'
      ? `${path} has ${LOCKS_ON_RESOURCE_MAX} locks, which is the most it may have; wait until one ends`
      : `you hold ${LOCKS_OF_USER_MAX} locks, which is the most a user may have; release some`,
  );
}

/** An empty file is kept back for as long as it is locked; whether it was made now. */
async function makeFile({ drive, path }: Context, entry: Entry | undefined, taken: Lock): Promise<boolean> {
  if (entry && !isEmptyFile(entry)) return false;
  try {
    return (await drive.files.hold(path, taken.timeoutSeconds * 1000)).created;
  } catch (error) {
    await drive.state.locks.release(taken.token);
    throw error;
  }
}

function isEmptyFile(entry: Entry): boolean {
  return entry.kind === 'file' && entry.sizeBytes === 0;
}

async function refresh(context: Context): Promise<void> {
  const { drive, path, principal, request, clock, signal } = context;
  const entry = await drive.files.stat(path, signal);
  if (request.headers['if'] === undefined)
    throw new DavError(400, 'a LOCK without a body refreshes a lock, and needs its token in the header If');
  const { tokens } = await checkConditions(context, entry);
  const covering = await drive.state.locks.covering(clock.now(), path);
  const old = covering.find((one) => tokens.has(one.token) && one.principal === principal);
  const timeoutSeconds = lockTimeoutSeconds(request.headers);
  const expiresMs = clock.now() + timeoutSeconds * 1000;
  const renewed =
    old && (await drive.state.locks.refresh(clock.now(), old.token, { timeoutSeconds, expiresMs }));
  if (!renewed)
    throw new DavError(412, `no lock of yours on ${path} has this token; it may have run out`, {
      precondition: 'lock-token-matches-request-uri',
    });
  if (entry && isEmptyFile(entry)) await drive.files.hold(entry.path, timeoutSeconds * 1000);
  await answerLocks(context, 200, renewed, entry, { isRefresh: true });
}

/** The lock in question comes first: some clients look no further. */
async function answerLocks(
  { response, drive, clock, path }: Context,
  status: number,
  first: Lock,
  entry: Entry | undefined,
  { isRefresh = false } = {},
): Promise<void> {
  const covering = await drive.state.locks.covering(clock.now(), first.root);
  const locks = [first, ...covering.filter(({ token }) => token !== first.token)];
  const href = ({ root }: Lock) =>
    hrefOf(root, keyOf(root) === keyOf(path) ? entry?.kind === 'folder' : true);
  const xml = `<D:prop xmlns:D="DAV:"><D:lockdiscovery>${lockDiscoveryXml(locks, href, clock.now())}</D:lockdiscovery></D:prop>`;
  // A refreshed lock keeps its token, and the header is for new ones (§10.5).
  answerXml(response, status, xml, isRefresh ? {} : { 'Lock-Token': `<${first.token}>` });
}

/** What is further down stops a lock of a whole tree: then it is told which, and that the rest depends on it (§9.10.9). */
async function refuse(
  context: Context,
  entry: Entry | undefined,
  { root }: Lock | Claim,
  reason: string,
): Promise<void> {
  const { path, response } = context;
  const condition = '<D:no-conflicting-lock/>';
  const href = await lockedHref(context, root);
  if (keyOf(root) === keyOf(path) || !isWithin(root, path))
    throw new DavError(423, `${root} ${reason}`, { precondition: 'no-conflicting-lock', hrefs: [href] });
  const statusXml = (status: number) => `<D:status>${statusLine(status)}</D:status>`;
  const rows = [
    responseXml(href, `${statusXml(423)}<D:error>${condition}</D:error>`),
    responseXml(hrefOf(path, entry?.kind === 'folder'), statusXml(424)),
  ];
  answerMultistatus(response, multistatusBody(rows));
}
