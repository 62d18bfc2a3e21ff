import { checkConditions, requireParent } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { methodNotAllowed } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import { hrefOf, refuseBody } from '../request.ts';

/** MKCOL (RFC 4918 §9.3). rclone sends one before each upload, so an existing folder costs no call of the service. */
export async function mkcol(context: Context): Promise<void> {
  const { drive, path, exchange } = context;
  await refuseBody(context.exchange);
  const entry = await drive.files.stat(path, exchange.signal);
  if (entry) throw methodNotAllowed(`${path} already exists: it is a ${entry.kind}`, entry);
  const conditions = await checkConditions(context, entry);
  await withRequestLock(context, conditions, [{ path, membership: true }], async () => {
    await requireParent(context, path);
    await drive.files.createFolder(path);
  });
  await context.exchange.answer({
    status: 201,
    headers: { Location: hrefOf(context.exchange, path, true) },
    body: undefined,
  });
}
