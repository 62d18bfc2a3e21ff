import { notAllowed } from '../allow.ts';
import { answerEmpty } from '../answers/answer.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import { hrefOf } from '../href.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import type { Context } from '../method.ts';
import { requireParent } from '../parent-folder.ts';

/** RFC 4918 §9.3. rclone sends one before each write, so "there already" costs no call of the service. */
export async function mkcol(context: Context): Promise<void> {
  const { drive, path, signal } = context;
  await context.body.refuse();
  const entry = await drive.files.stat(path, signal);
  if (entry) throw notAllowed(`there is a ${entry.kind} at ${path} already`, entry);
  const conditions = await checkConditions(context, entry);
  await withRequestLock(context, conditions, [{ path, membership: true }], async () => {
    await requireParent(context, path);
    await drive.files.createFolder(path);
  });
  answerEmpty(context.response, 201, { Location: hrefOf(path, true) });
}
