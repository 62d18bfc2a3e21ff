import type { Account } from './api/account.ts';
import { isStillOpen, type Told } from './api/admission.ts';
import { createRemote, type RemoteOptions } from './api/client.ts';
import { ApiError } from './api/errors.ts';
import { OtherOwner } from './state/errors.ts';
import type { Journals } from './state/journal.ts';
import { isSameOwner, type Owner, shownOwner } from './state/owners.ts';
import type { State } from './state/state.ts';
import type { Clock } from './util/clock.ts';
import { type Log, silentLog } from './util/log.ts';
import { ROOT } from './util/path.ts';

/** A start asks so long whose the login is, ms: a service that is away must not keep davgate from starting. */
const ASK_MS = 3_000;

/** A drive that is about to be opened, and what is kept for one of its name. */
export interface Claim {
  readonly drive: string;
  /** Its service and root. */
  readonly service: Pick<RemoteOptions, 'apiUrl' | 'contentUrl' | 'notifyUrl' | 'credentials' | 'root'>;
  readonly state: State;
  readonly journals: Journals | undefined;
  /** Where those are, for messages. */
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sees to it that nothing that was acknowledged for one account, or one folder of it, gets into another. With nothing
 * that waits, the drive begins anew for a new account. Throws `OtherOwner`. Returns how the drive's calls are to be
 * admitted where the service could not be asked yet whose the login is.
 */
export async function claimDrive(claim: Claim): Promise<RemoteOptions['admit']> {
  const told = await whose(claim);
  if (told === undefined) {
    claim.log.warn('the service does not say yet whose the login is; before it does no call is made', {
      drive: claim.drive,
    });
    return (later) => admitLater(claim, later);
  }
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
  const { holds, relocations } = state.drive(drive);
  return (await holds.within(ROOT)).length + (await relocations.all()).length;
}

async function ownersOf({ drive, state, journals }: Claim): Promise<Owner[]> {
  const found = [await state.owners.get(drive), await journals?.owners.get(drive)];
  return found.filter((owner) => owner !== undefined);
}

function ownerOf({ service: { root } }: Claim, { id: accountId, email }: Account): Owner {
  return { accountId, email, root };
}

/** `undefined`: the service does not say now. */
async function whose({ service, clock }: Claim): Promise<Told | undefined> {
  const remote = createRemote({ ...service, clock, log: silentLog, deadlineMs: ASK_MS });
  const over = new AbortController();
  const late = clock.sleep(ASK_MS, over.signal).then(
    () => undefined,
    () => undefined,
  );
  try {
    return await Promise.race([remote.account(over.signal), late]);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return isStillOpen(error) ? undefined : 'untold';
  } finally {
    over.abort();
    await remote.close();
  }
}
