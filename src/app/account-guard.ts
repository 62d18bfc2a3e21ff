import type { LoginAccount } from '../api/account-check.ts';
import { createRemote, type HttpRemote, type RemoteOptions } from '../api/client.ts';
import type { Account } from '../api/current-account.ts';
import { ApiError, isApiFailure, isOutage } from '../api/errors.ts';
import { ROOT_UNKNOWN } from '../api/path-root.ts';
import { adviceForRefusedLogin, type DriveConfig, type RemoteService } from '../config/drive-config.ts';
import { OtherOwner } from '../state/errors.ts';
import type { Journals } from '../state/journal.ts';
import { isSameOwner, type Owner, shownOwner } from '../state/owners.ts';
import type { State } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import { type Log, silentLog } from '../util/log.ts';
import { ROOT } from '../util/path.ts';
import { waitAtMost } from '../util/wait.ts';

/** How long a start waits for each answer of the service, in ms. davgate also starts without the service. */
const ASK_MS = 3_000;

/** The service refused the login, or has no folder at the drive's root; `message` says what to do. */
class DriveUnusable extends Error {
  override readonly name = 'DriveUnusable';
}

/** A drive that is about to be opened, and the stores that may have data of a drive with its name. */
export interface Claim {
  readonly drive: string;
  /** Its service, namespace and root. */
  readonly service: RemoteService & Pick<DriveConfig, 'namespace' | 'root'>;
  readonly state: State;
  readonly journals: Journals | undefined;
  /** The directory of both stores, for messages. */
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Keeps writes that were acknowledged for one account, or one folder of it, out of any other. Without pending writes, the
 * drive starts empty for a new account. Throws `OtherOwner`, `DriveUnusable`. Returns the login's account, or, if it is not
 * yet known, the check that admits the drive's calls later.
 */
export async function claimDrive(claim: Claim): Promise<Pick<RemoteOptions, 'account' | 'admit'>> {
  const account = await accountOfLogin(claim);
  if (account === undefined) {
    claim.log.warn("cannot learn the login's account yet; no calls are made until then", {
      drive: claim.drive,
    });
    return { admit: (later) => admitLater(claim, later) };
  }
  await refuseMissingRoot(claim, account);
  await settle(claim, account);
  return { account };
}

async function settle(claim: Claim, account: LoginAccount): Promise<void> {
  const { drive, state, journals, log } = claim;
  if (account === 'unreadable') {
    const [before] = await ownersOf(claim);
    if (before)
      throw new OtherOwner(
        `drive "${drive}": ${claim.dataDirectory} belongs to ${shownOwner(before)}, and the account of this login is unknown; give its app the scope account_info.read`,
      );
    log.warn('the login lacks the scope account_info.read; a change of the account will not be noticed', {
      drive,
    });
    return;
  }
  const owner = ownerOf(claim, account);
  await refuseWaiting(claim, owner);
  await state.owners.set(drive, owner);
  await journals?.owners.set(drive, owner);
}

/** Admits the calls of an open drive. It was opened with the data of the previous owner, so any other owner is refused. */
async function admitLater(claim: Claim, account: LoginAccount): Promise<void> {
  const { drive, log } = claim;
  try {
    const owner = account === 'unreadable' ? undefined : ownerOf(claim, account);
    const before = await ownersOf(claim);
    const other = owner && before.find((each) => !isSameOwner(each, owner));
    if (owner && other)
      throw new OtherOwner(
        `drive "${drive}" was opened with the data of ${shownOwner(other)}, but this login belongs to ${shownOwner(owner)}; restart davgate`,
      );
    await settle(claim, account);
  } catch (error) {
    if (!(error instanceof OtherOwner)) throw error;
    log.error('the login does not belong to the owner of the stored data; no calls are made', {
      reason: error.message,
    });
    throw new ApiError('unauthorized', error.message);
  }
}

/** Throws `OtherOwner` if writes are pending for another account or another folder. */
async function refuseWaiting(claim: Claim, owner: Owner): Promise<void> {
  const { drive, state, journals, dataDirectory } = claim;
  const [first] = await ownersOf(claim);
  // An older davgate stored the owner in only one of the two; the other one belongs to the same owner.
  const ofState = (await state.owners.get(drive)) ?? first;
  const ofJournal = (await journals?.owners.get(drive)) ?? first;
  const unfinished = ofState && !isSameOwner(ofState, owner) ? await unfinishedChanges(state, drive) : 0;
  const pending =
    ofJournal && !isSameOwner(ofJournal, owner) ? ((await (await journals?.drive(drive))?.all()) ?? []) : [];
  const before = pending.length > 0 ? ofJournal : ofState;
  const count = unfinished + pending.length;
  if (count === 0 || !before) return;
  throw new OtherOwner(
    `drive "${drive}": ${count === 1 ? '1 file' : `${count} files`} in ${dataDirectory} must still be sent to ${shownOwner(before)}, but this login belongs to ${shownOwner(owner)}; run davgate with the old settings until /.davgate/healthz shows 0 heldFiles and 0 journalFiles, or use another --data-dir for this login`,
  );
}

/** Counts placeholders, and moves that a kill interrupted: only the same account can complete them. */
export async function unfinishedChanges(state: State, drive: string): Promise<number> {
  const { placeholders, replacements } = state.drive(drive);
  return (await placeholders.within(ROOT)).length + (await replacements.all()).length;
}

async function ownersOf({ drive, state, journals }: Claim): Promise<Owner[]> {
  const found = [await state.owners.get(drive), await journals?.owners.get(drive)];
  return found.filter((owner) => owner !== undefined);
}

function ownerOf({ service }: Claim, account: Account): Owner {
  const { id: accountId, email, homeNamespace } = account;
  const number = numberOf(service, account);
  const isHome = number === undefined || number === homeNamespace;
  return { accountId, email, root: isHome ? service.root : `ns:${number}${service.root}` };
}

/** Returns the number of the namespace that a drive shows; `undefined` for the account's home. */
function numberOf({ namespace }: Claim['service'], { rootNamespace }: Account): string | undefined {
  return namespace === 'root' ? rootNamespace : namespace;
}

/** Returns the login's account; `undefined` without an answer. Throws `DriveUnusable` if the service refuses the login. */
async function accountOfLogin(claim: Claim): Promise<LoginAccount | undefined> {
  try {
    return await answerOf(claim, (remote, signal) => remote.account(signal));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.failure !== 'unauthorized') return isOutage(error) ? undefined : 'unreadable';
    const { apiUrl, credentials } = claim.service;
    const advice = adviceForRefusedLogin(credentials, error.details.summary);
    throw new DriveUnusable(
      `drive "${claim.drive}": ${apiUrl} refused the login: ${error.message}; ${advice}`,
    );
  }
}

/** Throws `DriveUnusable` if the drive's root is not a folder. Without an answer, later requests find that out. */
async function refuseMissingRoot(claim: Claim, account: LoginAccount): Promise<void> {
  const { root, namespace } = claim.service;
  if (namespace !== undefined) await refuseNamespace(claim, account);
  if (root === '') return;
  const kind = await kindOfRoot(claim);
  if (kind === undefined || kind === 'folder') return;
  const name = account === 'unreadable' ? '' : ` ${account.email}`;
  const found = kind === 'nothing' ? `the account${name} has no folder ${root}` : `${root} is a file`;
  throw new DriveUnusable(
    `drive "${claim.drive}": ${found}; correct --root ("root" in a configuration file) or make the folder`,
  );
}

/** Throws `DriveUnusable` if the account has no such namespace. */
async function refuseNamespace(claim: Claim, account: LoginAccount): Promise<void> {
  const { drive, service } = claim;
  if (service.namespace === 'root' && (account === 'unreadable' || account.rootNamespace === undefined))
    throw new DriveUnusable(`drive "${drive}": ${ROOT_UNKNOWN}`);
  try {
    await answerOf(claim, (remote, signal) => remote.latestCursor(signal));
  } catch (error) {
    if (!isApiFailure(error, 'wrong-namespace')) return;
    throw new DriveUnusable(
      `drive "${drive}": the account cannot use the namespace ${service.namespace}: ${error.message}; correct --namespace ("namespace" in a configuration file), or give the account access to it`,
    );
  }
}

/** Returns the kind of the drive's root; `undefined` without an answer. */
async function kindOfRoot(claim: Claim): Promise<'nothing' | 'file' | 'folder' | undefined> {
  try {
    return await answerOf(
      claim,
      async (remote, signal) => (await remote.stat(ROOT, signal))?.kind ?? 'nothing',
    );
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Returns the result of `call`; `undefined` if it takes too long. Throws `ApiError`. */
async function answerOf<T>(
  { service, clock }: Claim,
  call: (remote: HttpRemote, signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const remote = createRemote({ ...service, clock, log: silentLog, deadlineMs: ASK_MS });
  const over = new AbortController();
  try {
    return await waitAtMost(clock, ASK_MS, call(remote, over.signal), () => undefined);
  } finally {
    over.abort();
    await remote.close();
  }
}
