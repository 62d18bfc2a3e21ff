import { FileError } from '../../drive/errors.ts';
import type { Path } from '../../util/path.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import { lockTokenOf } from '../request-headers.ts';

/** UNLOCK (RFC 4918 §9.11). Commits the empty file that LOCK created, if nothing was written to it. */
export async function unlock(context: Context): Promise<void> {
  const { drive, path, principal, request, clock, exchange } = context;
  const token = lockTokenOf(request.headers);
  const covering = await drive.state.locks.covering(clock.now(), path);
  const lock = covering.find((one) => one.token === token);
  if (!lock)
    throw new DavError(409, `no lock on ${path} has this token; it may have expired`, {
      precondition: 'lock-token-matches-request-uri',
    });
  if (lock.principal !== principal)
    throw new DavError(403, 'the lock belongs to another user; only that user can release it, or it expires');
  await checkConditions(context, await drive.files.stat(path, exchange.signal));
  await withRequestLock(context, { tokens: new Set([token]) }, [{ path: lock.root }], async () => {
    await settle(context, lock.root);
    await drive.state.locks.release(token);
  });
  await context.exchange.answer({ status: 204, headers: {}, body: undefined });
}

/** The placeholder is stored durably: an unreachable service is no reason to keep it locked. */
async function settle({ drive, log }: Context, path: Path): Promise<void> {
  try {
    await drive.files.commitPlaceholder(path);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    log.warn('cannot commit a placeholder yet', { fault: error.fault, reason: error.message });
  }
}
