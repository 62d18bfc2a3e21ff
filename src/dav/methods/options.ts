import { FileError } from '../../drive/errors.ts';
import { ALLOWED_SOMEWHERE, allowedOn } from '../allow.ts';
import { answerEmpty } from '../answers/answer.ts';
import type { Context } from '../method.ts';

/**
 * RFC 4918 §10.1. Status 200, as old clients know no other; `MS-Author-Via` is what makes Office edit in
 * place instead of opening read-only.
 */
export async function options(context: Context): Promise<void> {
  answerEmpty(context.response, 200, {
    DAV: '1, 2, 3',
    'MS-Author-Via': 'DAV',
    'Accept-Ranges': 'bytes',
    Allow: await allowed(context),
  });
}

/** The first question of every client: a service that is away for a moment must not make a mount fail. */
async function allowed({ drive, path, signal }: Context): Promise<string> {
  try {
    return allowedOn(await drive.files.stat(path, signal));
  } catch (error) {
    if (error instanceof FileError) return ALLOWED_SOMEWHERE;
    throw error;
  }
}
