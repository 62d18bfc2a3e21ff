import type { ListFolderResult, Metadata } from '../../wire/files.ts';
import type { Account } from '../accounts/accounts.ts';
import { ApiRefusal, BadArgument, failure, nested, refused } from '../api/failures.ts';
import { type AskedFields, askedIn, metadata, withAsked } from '../api/metadata.ts';
import type { ApiCall, ApiCaller } from '../api/route.ts';
import { optional, required, string, struct } from '../api/schema.ts';
import { type CursorOwner, type ListingScope, StorageError, type StoredPage } from '../storage/storage.ts';
import { accessLink } from './access.ts';
import { isExpired, type Link } from './links.ts';
import { itemOf, type OpenLink, ownerOf } from './sharing.ts';

/** SharedLink of ListFolderArg. */
export const sharedLink = struct({ url: required(string()), password: optional(string()) });

type Someone = ApiCall<ApiCaller | undefined>;

/** A listing inside a link, whose `path` starts at the linked folder. */
export interface LinkListing {
  readonly owner: CursorOwner;
  readonly scope: ListingScope;
  /** The link, for the listing's cursors. */
  readonly opened: OpenLink;
}

/** Opens a link in order to list it. Throws ListFolderError. */
export async function linkListing(
  call: Someone,
  { url, password }: ReturnType<typeof sharedLink>,
  scope: ListingScope,
): Promise<LinkListing> {
  if (scope.recursive) throw new BadArgument('recursive: not supported together with shared_link');
  if (scope.path !== '' && !scope.path.startsWith('/'))
    throw new BadArgument('path: must be empty or start with "/" together with shared_link');
  const opened = await open(call, { url, path: scope.path, link_password: password });
  // From the linked folder's id on: by then another folder may have its path, and the item may have left the folder.
  const path = opened.address;
  const owner = await cursorOwner(call, opened.link, opened.account);
  if (!owner) throw refused(nested('path', failure('not_found')));
  return { owner, scope: { ...scope, path }, opened };
}

/** Returns a page of the listing without paths, which only the link's owner may see. */
export function linkPage(
  { entries, cursor, hasMore }: StoredPage,
  token: string,
  asked: AskedFields,
): ListFolderResult {
  return {
    entries: entries.map((entry) => pathless(entry, asked)),
    cursor: withAsked(linkCursor(token, cursor), asked),
    has_more: hasMore,
  };
}

/** Returns the cursor of a listing inside a link: the storage's cursor, and the link that must be open. */
export function linkCursor(token: string, cursor: string): string {
  return `link.${token}.${cursor}`;
}

const LINK_CURSOR = /^link\.([0-9a-f]+)\.(.+)$/;

/** Returns the storage's part of any cursor. */
export function storageCursor(cursor: string): string {
  const { inner } = askedIn(cursor);
  return LINK_CURSOR.exec(inner)?.[2] ?? inner;
}

/**
 * Returns the next page inside a link; `undefined` for any other cursor. Throws `reset` when the link is closed, has
 * another password, or leads to another item.
 */
export async function linkContinue(
  call: Someone,
  cursor: string,
  asked: AskedFields,
): Promise<ListFolderResult | undefined> {
  const [, token, inner] = LINK_CURSOR.exec(cursor) ?? [];
  if (token === undefined || inner === undefined) return undefined;
  const link = await call.links.withToken(token);
  const isOwner = link?.accountId === call.caller?.account.id;
  const isOpen = link && !isExpired(link, call.clock.now()) && (isOwner || link.visibility !== 'no_one');
  const account = isOpen ? await ownerOf(call, link) : undefined;
  const owner = link && account && (await cursorOwner(call, link, account));
  if (!owner) throw refused(failure('reset'));
  try {
    const page = await call.storage.listContinue(owner, inner);
    if (!(await isStillThere(call, { link, account }, owner))) throw refused(failure('reset'));
    return linkPage(page, token, asked);
  } catch (error) {
    const isAnothers = error instanceof StorageError && error.refusal.kind === 'cursor';
    throw isAnothers ? refused(failure('reset')) : error;
  }
}

/**
 * Checks that the linked folder has not moved while its listing was read, after which the cursor may name another folder.
 * Throws ListFolderError.
 */
export async function checkStillThere(call: Someone, opened: OpenLink, owner: CursorOwner): Promise<void> {
  if (!(await isStillThere(call, opened, owner))) throw refused(nested('path', failure('not_found')));
}

async function isStillThere(
  call: Someone,
  { link, account }: Pick<OpenLink, 'link' | 'account'>,
  owner: CursorOwner,
): Promise<boolean> {
  return (await cursorOwner(call, link, account))?.app === owner.app;
}

/**
 * Returns the owner of cursors made inside `link`, or `undefined` when the linked folder is gone. Such a cursor works
 * only in this link and with its password, and only until the folder moves: a cursor names a folder by its path, and
 * another folder that takes that path later was never shared.
 */
async function cursorOwner(call: Someone, link: Link, account: Account): Promise<CursorOwner | undefined> {
  const folder = await itemOf(call, account, link.itemId);
  if (!folder) return undefined;
  const key = link.passwordHash ? Buffer.from(link.passwordHash).toString('hex') : '';
  return {
    namespace: account.namespace,
    account: call.caller?.account.id ?? '',
    app: `link ${link.token} ${key} ${folder.pathLower}`,
  };
}

async function open(call: Someone, argument: Parameters<typeof accessLink>[1]): Promise<OpenLink> {
  try {
    return await accessLink(call, argument);
  } catch (error) {
    if (!(error instanceof ApiRefusal)) throw error;
    const isDenied = error.failure.tags[0] === 'shared_link_access_denied';
    throw refused(nested('path', failure(isDenied ? 'restricted_content' : 'not_found')));
  }
}

function pathless(entry: StoredPage['entries'][number], asked: AskedFields): Metadata {
  const { path_lower: _, path_display: __, ...rest } = metadata(entry, asked);
  return rest;
}
