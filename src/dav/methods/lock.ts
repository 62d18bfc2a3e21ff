import type { Lock } from '../../state/locks.ts';
import { isWithin, keyOf, parentOf } from '../../util/path.ts';
import type { Entry } from '../../vfs/files.ts';
import { answerXml } from '../answers/answer.ts';
import { answerMultistatus, multistatusBody, responseXml, statusLine } from '../answers/multistatus.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { depthOf, lockTimeoutSeconds } from '../headers.ts';
import { hrefOf } from '../href.ts';
import { lockedHref, requireLocks } from '../locks/check.ts';
import { lockDiscoveryXml, parseLockInfo } from '../locks/xml.ts';
import type { Context } from '../method.ts';
import { requireParent } from '../parent-folder.ts';
import type { XmlElement } from '../xml/element.ts';
import { readXml } from '../xml/read.ts';

/** RFC 4918 §9.10: takes a lock, or with an empty body refreshes one. */
export async function lock(context: Context): Promise<void> {
  const root = await readXml(context.body);
  const entry = await context.drive.files.stat(context.path, context.signal);
  if (root) await take(context, entry, root);
  else await refresh(context, entry);
}

async function take(context: Context, entry: Entry | undefined, root: XmlElement): Promise<void> {
  const { drive, path, request, clock } = context;
  const { scope, ownerXml } = parseLockInfo(root);
  const depth = depthOf(request.headers, ['0', 'infinity'], 'infinity');
  const { tokens } = await checkConditions(context, entry);
  if (!entry) await requirePlace(context, tokens);
  const timeoutSeconds = lockTimeoutSeconds(request.headers);
  const token = `urn:uuid:${context.randomUuid()}`;
  const expiresMs = clock.now() + timeoutSeconds * 1000;
  const { principal } = context;
  const wanted: Lock = { token, root: path, scope, depth, ownerXml, principal, timeoutSeconds, expiresMs };
  const taken = await drive.state.locks.create(clock.now(), wanted);
  if ('conflict' in taken) return await refuse(context, entry, taken.conflict);
  const created = await makeFile(context, entry, taken);
  await answerLocks(context, created ? 201 : 200, taken, entry);
}

/** Where nothing is, an empty file will be (§7.3): it needs a folder, and leave to be put there. */
async function requirePlace(context: Context, tokens: ReadonlySet<string>): Promise<void> {
  const { drive, path, namesCollection } = context;
  if (namesCollection)
    throw new DavError(
      409,
      'LOCK makes a file where nothing is, and this name ends with a slash; use MKCOL first',
    );
  await requireParent(context, path);
  // An exclusive lock that covers the new name as well is the conflict that `create` will find.
  const above = await drive.state.locks.covering(context.clock.now(), parentOf(path));
  if (above.some(({ depth, scope }) => depth === '0' || scope === 'shared'))
    await requireLocks(context, tokens, [{ path: parentOf(path) }]);
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

async function refresh(context: Context, entry: Entry | undefined): Promise<void> {
  const { drive, path, principal, request, clock } = context;
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

/** A lock further down stops one of a whole tree: then it is told which, and that the rest depends on it (§9.10.9). */
async function refuse(context: Context, entry: Entry | undefined, lock: Lock): Promise<void> {
  const { path, response } = context;
  const { root } = lock;
  const condition = '<D:no-conflicting-lock/>';
  const href = await lockedHref(context, lock);
  if (keyOf(root) === keyOf(path) || !isWithin(root, path))
    throw new DavError(423, `${root} is locked already`, {
      precondition: 'no-conflicting-lock',
      hrefs: [href],
    });
  const statusXml = (status: number) => `<D:status>${statusLine(status)}</D:status>`;
  const rows = [
    responseXml(href, `${statusXml(423)}<D:error>${condition}</D:error>`),
    responseXml(hrefOf(path, entry?.kind === 'folder'), statusXml(424)),
  ];
  answerMultistatus(response, multistatusBody(rows));
}
