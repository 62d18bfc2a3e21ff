import { FileError } from '../../drive/errors.ts';
import { clientOf } from '../clients.ts';
import { type Context, entryHere } from '../context.ts';
import {
  ALLOWED_ABOVE,
  ALLOWED_IN_PAST,
  ALLOWED_READING,
  ALLOWED_SOMEWHERE,
  allowedMethods,
} from '../errors.ts';

/** The grammars of SEARCH (RFC 5323 §3.2). */
const DASL = '<DAV:basicsearch>';

/**
 * OPTIONS (RFC 4918 §10.1). Answers 200, because old clients reject 204. `MS-Author-Via` makes Office edit in place;
 * without it Office opens files read-only.
 */
export async function options(context: Context): Promise<void> {
  const { drive, path, request, exchange } = context;
  if (drive.isReadOnly?.(path)) {
    // Without class 2, the locks, Finder mounts a drive read-only.
    const DAV = clientOf(request).readOnlySign === 'no locks' ? '1, 3' : '1, 2, 3';
    const Allow = drive.historyFolders?.owns(path) ? ALLOWED_IN_PAST : ALLOWED_READING;
    const headers = { DAV, 'Accept-Ranges': 'bytes', DASL, Allow };
    return exchange.answer({ status: 200, headers, body: undefined });
  }
  const headers = {
    DAV: '1, 2, 3, extended-mkcol, sabredav-partialupdate',
    'MS-Author-Via': 'DAV',
    'Accept-Ranges': 'bytes',
    DASL,
    Allow: await allowedHere(context),
  };
  await exchange.answer({ status: 200, headers, body: undefined });
}

/** OPTIONS is the first request of every client: a service that is briefly unreachable must not make a mount fail. */
async function allowedHere(context: Context): Promise<string> {
  if (context.exchange.above !== undefined) return ALLOWED_ABOVE;
  try {
    return allowedMethods(await entryHere(context));
  } catch (error) {
    if (error instanceof FileError) return ALLOWED_SOMEWHERE;
    throw error;
  }
}
