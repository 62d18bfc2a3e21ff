import { FileError } from '../../drive/errors.ts';
import type { Path } from '../../util/path.ts';
import { answerEmpty } from '../answers/answer.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { lockTokenOf } from '../headers.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import type { Context } from '../method.ts';

/** RFC 4918 §9.11. A file that was made by the lock and got no content is committed as it is. */
export async function unlock(context: Context): Promise<void> {
  const { drive, path, principal, request, clock, signal } = context;
  const token = lockTokenOf(request.headers);
  const covering = await drive.state.locks.covering(clock.now(), path);
  const lock = covering.find((one) => one.token === token);
  if (!lock)
    throw new DavError(409, `no lock on ${path} has this token; it may have run out`, {
      precondition: 'lock-token-matches-request-uri',
    });
  if (lock.principal !== principal)
    throw new DavError(403, 'only who took a lock can release it; the lock runs out by itself');
  await checkConditions(context, await drive.files.stat(path, signal));
  await withRequestLock(context, { tokens: new Set([token]) }, [{ path: lock.root }], async () => {
    await settle(context, lock.root);
    await drive.state.locks.release(token);
  });
  answerEmpty(context.response, 204);
}

/** A held file is safe already: that the service is away now is no reason to keep it locked. */
async function settle({ drive, log }: Context, path: Path): Promise<void> {
  try {
    await drive.files.settle(path);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    log.warn('a held file could not be committed yet', { fault: error.fault, reason: error.message });
  }
}
