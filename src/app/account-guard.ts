import type { Told } from '../api/account-check.ts';
import { createRemote, type HttpRemote, type RemoteOptions } from '../api/client.ts';
import type { Account } from '../api/current-account.ts';
import { ApiError, isOutage } from '../api/errors.ts';
import { adviceForRefusedLogin, type RemoteService } from '../config/drive-config.ts';
import { OtherOwner } from '../state/errors.ts';
import type { Journals } from '../state/journal.ts';
import { isSameOwner, type Owner, shownOwner } from '../state/owners.ts';
import type { State } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import { type Log, silentLog } from '../util/log.ts';
import { ROOT } from '../util/path.ts';
import { waitAtMost } from '../util/wait.ts';

/** How long a start waits for each answer of the service, in ms: one that is away must not keep davgate from starting. */
const ASK_MS = 3_000;

/** The service does not take the login, or has no folder at the drive's root; `message` says what to do. */
class DriveUnusable extends Error {
  override readonly name = 'DriveUnusable';
}

/** A drive that is about to be opened, and what is kept for one of its name. */
export interface Claim {
  readonly drive: string;
  /** Its service and root. */
  readonly service: RemoteService & { readonly root: string };
  readonly state: State;
  readonly journals: Journals | undefined;
  /** Where those are, for messages. */
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sees to it that nothing that was acknowledged for one account, or one folder of it, gets into another. With nothing
 * that waits, the drive starts empty for a new account. Throws `OtherOwner`, `DriveUnusable`. Returns how to
 * admit the drive's calls while the service has not told the login's account yet.
 */
export async function claimDrive(claim: Claim): Promise<RemoteOptions['admit']> {
  const told = await whose(claim);
  if (told === undefined) {
    claim.log.warn('the service does not say yet whose the login is; before it does no call is made', {
      drive: claim.drive,
    });
    return (later) => admitLater(claim, later);
  }
  await refuseMissingRoot(claim, told);
  await settle(claim, told);
  return undefined;
}

async function settle(claim: Claim, told: Told): Promise<void> {
  const { drive, state, journals, log } = claim;
  if (told === 'untold') {
    const [before] = await ownersOf(claim);
    if (before)
      throw new OtherOwner(
        `drive "${drive}": ${claim.dataDirectory} holds what belongs to ${shownOwner(before)}, and this login may not tell whose it is; give its app the scope account_info.read`,
      );
    log.warn('the login may not tell whose it is: a change of the account will not be noticed', { drive });
    return;
  }
  const owner = ownerOf(claim, told);
  await refuseWaiting(claim, owner);
  await state.owners.set(drive, owner);
  await journals?.owners.set(drive, owner);
}

/** The drive is open by then, with what was kept for the owner before: for another one it has to be opened anew. */
async function admitLater(claim: Claim, told: Told): Promise<void> {
  const { drive, log } = claim;
  try {
    const owner = told === 'untold' ? undefined : ownerOf(claim, told);
    const before = await ownersOf(claim);
    const other = owner && before.find((each) => !isSameOwner(each, owner));
    if (owner && other)
      throw new OtherOwner(
        `drive "${drive}" was opened with what belongs to ${shownOwner(other)}, and this login is of ${shownOwner(owner)}; start davgate again`,
      );
    await settle(claim, told);
  } catch (error) {
    if (!(error instanceof OtherOwner)) throw error;
    log.error('the login is of another account than what is kept here: no call is made', {
      reason: error.message,
    });
    throw new ApiError('unauthorized', error.message);
  }
}

/** What waits for another account, or for another folder, stays where it is. */
async function refuseWaiting(claim: Claim, owner: Owner): Promise<void> {
  const { drive, state, journals, dataDirectory } = claim;
  const [first] = await ownersOf(claim);
  // Where only one of the two says whose it is, as after an older davgate, the other is of the same owner.
  const ofState = (await state.owners.get(drive)) ?? first;
  const ofJournal = (await journals?.owners.get(drive)) ?? first;
  const held = ofState && !isSameOwner(ofState, owner) ? await heldFiles(state, drive) : 0;
  const pending =
    ofJournal && !isSameOwner(ofJournal, owner) ? ((await (await journals?.drive(drive))?.all()) ?? []) : [];
  const before = pending.length > 0 ? ofJournal : ofState;
  const count = held + pending.length;
  if (count === 0 || !before) return;
  throw new OtherOwner(
    `drive "${drive}": ${count === 1 ? '1 file waits' : `${count} files wait`} in ${dataDirectory} to be sent to ${shownOwner(before)}, and this login is of ${shownOwner(owner)}; start davgate with the former until /.davgate/healthz shows none and stop it, or give this one a --data-dir of its own`,
  );
}

/** What a kill left half done in a move counts too: it can be mended only where it was begun. */
async function heldFiles(state: State, drive: string): Promise<number> {
  const { placeholders, replacements } = state.drive(drive);
  return (await placeholders.within(ROOT)).length + (await replacements.all()).length;
}

async function ownersOf({ drive, state, journals }: Claim): Promise<Owner[]> {
  const found = [await state.owners.get(drive), await journals?.owners.get(drive)];
  return found.filter((owner) => owner !== undefined);
}

function ownerOf({ service: { root } }: Claim, { id: accountId, email }: Account): Owner {
  return { accountId, email, root };
}

/** Throws `DriveUnusable` for a login that the service refuses. `undefined`: the service does not say now. */
async function whose(claim: Claim): Promise<Told | undefined> {
  try {
    return await answerOf(claim, (remote, signal) => remote.account(signal));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.failure !== 'unauthorized') return isOutage(error) ? undefined : 'untold';
    const { apiUrl, credentials } = claim.service;
    const advice = adviceForRefusedLogin(credentials, error.details.summary);
    throw new DriveUnusable(
      `drive "${claim.drive}": ${apiUrl} refuses the login: ${error.message}; ${advice}`,
    );
  }
}

/** A root that cannot be looked at now is found missing by the requests that come. */
async function refuseMissingRoot(claim: Claim, told: Told): Promise<void> {
  const { root } = claim.service;
  if (root === '') return;
  const kind = await kindOfRoot(claim);
  if (kind === undefined || kind === 'folder') return;
  const account = told === 'untold' ? '' : ` ${told.email}`;
  const found = kind === 'nothing' ? `the account${account} has no folder ${root}` : `${root} is a file`;
  throw new DriveUnusable(
    `drive "${claim.drive}": ${found}; correct --root ("root" in a configuration file), or make the folder first`,
  );
}

/** `undefined`: the service does not say. */
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

/** What the service answers; `undefined` when it takes too long. Throws `ApiError`. */
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
