import type { Entry, FileEntry } from '../../drive/files.ts';
import {
  type Claim,
  LOCKS_OF_USER_MAX,
  LOCKS_ON_RESOURCE_MAX,
  type Lock,
  type LocksFull,
} from '../../state/locks.ts';
import { type LinkedSignal, linkedSignal } from '../../util/abort.ts';
import { isWithin, keyOf, parentOf } from '../../util/path.ts';
import { succeeds } from '../../util/succeeds.ts';
import {
  answerMultistatus,
  responseXml,
  statusLine,
  XML_DECLARATION,
  XML_TYPE,
} from '../answers/multistatus.ts';
import { checkConditions, type MetConditions, requireParent } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { lockDiscoveryXml, parseLockInfo } from '../locks/lock-xml.ts';
import { lockRootHref, withRequestLock } from '../locks/request-lock.ts';
import { depthOf, lockTimeoutSeconds } from '../request-headers.ts';
import { hrefOf } from '../resource-url.ts';
import type { XmlElement } from '../xml/xml-element.ts';

/** How long LOCK waits for running requests that change the resource, in ms. Most of them are about to commit. */
const CLAIM_WAIT_MS = 2_000;

/** LOCK (RFC 4918 §9.10): creates a lock, or refreshes one if the body is empty. */
export async function lock(context: Context): Promise<void> {
  const root = await context.xml.read(context.exchange);
  if (root) await create(context, root);
  else await refresh(context);
}

/** Waits for running requests that change the resource, and checks everything again after each of them. */
async function create(context: Context, root: XmlElement): Promise<void> {
  const { drive, clock } = context;
  const wanted = wantedLock(context, root);
  const wait = new ClaimWait(context);
  try {
    for (;;) {
      const { entry } = await lockable(context);
      const created = await drive.state.locks.create(clock.now(), wanted);
      if ('full' in created) throw tooManyLocks(context, created.full);
      if ('token' in created) return await answerCreated(context, created);
      if ('conflict' in created) return await refuse(context, entry, created.conflict, 'is already locked');
      if (!(await wait.until(created.claim.id)))
        return await refuse(
          context,
          entry,
          created.claim,
          'is being changed by another request; try again later',
        );
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

interface Lockable {
  /** `undefined`: the lock creates an empty file there (RFC 4918 §7.3). */
  readonly entry: Entry | undefined;
  readonly conditions: MetConditions;
}

/** Returns what is at the path. Throws `DavError` if the request's conditions are not met or no file can be created there. */
async function lockable(context: Context): Promise<Lockable> {
  const { drive, path, hasTrailingSlash, exchange } = context;
  const entry = await drive.files.statForWrite(path, { isPinned: false }, exchange.signal);
  const conditions = await checkConditions(context, entry);
  if (!entry && hasTrailingSlash)
    throw new DavError(
      409,
      'the URL ends with a slash and does not exist; create the folder with MKCOL, or LOCK without the slash',
    );
  if (!entry) await requireParent(context, path);
  return { entry, conditions };
}

/** Answers 507 and not 423, because the client cannot resolve it by submitting a token. */
function tooManyLocks({ path }: Context, full: LocksFull): DavError {
  return new DavError(
    507,
    full === 'resource'
      ? `${path} has ${LOCKS_ON_RESOURCE_MAX} locks, the maximum; wait until one of them ends`
      : `you have ${LOCKS_OF_USER_MAX} locks, the maximum for a user; release some of them`,
  );
}

/** Keeps an empty file as a placeholder while it is locked. Returns the file if it is new. */
async function keepEmptyFile(
  context: Context,
  { entry, conditions }: Lockable,
  { timeoutSeconds }: Lock,
): Promise<FileEntry | undefined> {
  if (entry && !isEmptyFile(entry)) return undefined;
  const { drive, path } = context;
  const keep = () => drive.files.keepPlaceholder(path, timeoutSeconds * 1000);
  // A new file becomes a member of its collection, whose locks apply.
  const { entry: file, created } = entry
    ? await keep()
    : await withRequestLock(context, conditions, [{ path: parentOf(path) }], keep);
  return created && file.kind === 'file' ? file : undefined;
}

/** Removes the empty file that a failed LOCK has created, unless it is not there any more. */
async function removeCreated({ drive, path }: Context, created: FileEntry): Promise<void> {
  const now = await drive.files.stat(path);
  const isSame = now?.kind === 'file' && now.id === created.id && now.rev === created.rev;
  if (isSame) await drive.files.remove(path, { recoverable: false });
}

function isEmptyFile(entry: Entry): boolean {
  return entry.kind === 'file' && entry.sizeBytes === 0;
}

async function refresh(context: Context): Promise<void> {
  const { drive, path, principal, request, clock, exchange } = context;
  const entry = await drive.files.stat(path, exchange.signal);
  if (request.headers['if'] === undefined)
    throw new DavError(400, 'a LOCK without a body refreshes a lock; submit its token in the If header');
  const { tokens } = await checkConditions(context, entry);
  const covering = await drive.state.locks.covering(clock.now(), path);
  const old = covering.find((one) => tokens.has(one.token) && one.principal === principal);
  const timeoutSeconds = lockTimeoutSeconds(request.headers);
  const expiresMs = clock.now() + timeoutSeconds * 1000;
  const renewed =
    old && (await drive.state.locks.refresh(clock.now(), old.token, { timeoutSeconds, expiresMs }));
  if (!renewed)
    throw new DavError(412, `none of your locks on ${path} has this token; it may have expired`, {
      precondition: 'lock-token-matches-request-uri',
    });
  if (entry && isEmptyFile(entry)) await drive.files.keepPlaceholder(entry.path, timeoutSeconds * 1000);
  const body = await lockBody(context, renewed, entry);
  await context.exchange.answer({ status: 200, headers: { 'Content-Type': XML_TYPE }, body });
}

/**
 * Answers with a new lock, for which it creates the file if there is none. Checks everything again: until the lock was granted,
 * other requests could change the resource, also at another gateway. Undoes all of it if the client cannot get the token.
 */
async function answerCreated(context: Context, lock: Lock): Promise<void> {
  const { exchange, drive } = context;
  let file: FileEntry | undefined;
  let body: string;
  try {
    await drive.catchUp?.();
    const found = await lockable(context);
    file = await keepEmptyFile(context, found, lock);
    body = await lockBody(context, lock, found.entry);
    exchange.signal.throwIfAborted();
  } catch (error) {
    // Others may have stored something in a file with a shared lock. If the removal fails, the file stays too.
    if (file && lock.scope === 'exclusive') await succeeds(removeCreated(context, file));
    await drive.state.locks.withdraw(lock);
    throw error;
  }
  // The header is for new locks only (§10.5).
  const headers = { 'Lock-Token': `<${lock.token}>`, 'Content-Type': XML_TYPE };
  await exchange.answer({ status: file ? 201 : 200, headers, body });
}

/** Renders all locks that cover the resource. `first` comes first, because some clients read only one. */
async function lockBody(
  { exchange, drive, clock, path }: Context,
  first: Lock,
  entry: Entry | undefined,
): Promise<string> {
  const covering = await drive.state.locks.covering(clock.now(), first.root);
  const locks = [first, ...covering.filter(({ token }) => token !== first.token)];
  const href = ({ root }: Lock) =>
    hrefOf(exchange, root, keyOf(root) === keyOf(path) ? entry?.kind === 'folder' : true);
  const discovery = `<D:lockdiscovery>${lockDiscoveryXml(locks, href, clock.now())}</D:lockdiscovery>`;
  return `${XML_DECLARATION}<D:prop xmlns:D="DAV:">${discovery}</D:prop>`;
}

/** Answers 423; or 207 with 423 for the conflict and 424 for the request's path, if the conflict is below it (§9.10.9). */
async function refuse(
  context: Context,
  entry: Entry | undefined,
  { root }: Lock | Claim,
  reason: string,
): Promise<void> {
  const { path, exchange } = context;
  const href = await lockRootHref(context, root);
  if (keyOf(root) === keyOf(path) || !isWithin(root, path))
    throw new DavError(423, `${root} ${reason}`, { precondition: 'no-conflicting-lock', hrefs: [href] });
  const statusXml = (status: number) => `<D:status>${statusLine(status)}</D:status>`;
  const rows = [
    responseXml(href, `${statusXml(423)}<D:error><D:no-conflicting-lock/></D:error>`),
    responseXml(hrefOf(exchange, path, entry?.kind === 'folder'), statusXml(424)),
  ];
  await answerMultistatus(exchange, rows);
}

/** The wait of one LOCK for the running requests in its way. */
class ClaimWait {
  readonly #context: Context;
  readonly #over = new AbortController();
  readonly #linked: LinkedSignal;
  #timeout: Promise<boolean> | undefined;

  constructor(context: Context) {
    this.#context = context;
    this.#linked = linkedSignal(context.exchange.signal, this.#over.signal);
  }

  /** Returns whether the request with the claims `id` ends in time. Rejects when the client goes away. */
  until(id: string): Promise<boolean> {
    const { clock, drive } = this.#context;
    const { signal } = this.#linked;
    this.#timeout ??= clock.sleep(CLAIM_WAIT_MS, signal).then(() => false);
    const ended = drive.state.locks.claimsEnd(id, signal).then(() => true);
    return Promise.race([ended, this.#timeout]);
  }

  /** Stops waiting. */
  end(): void {
    this.#over.abort();
    this.#linked.release();
  }
}
