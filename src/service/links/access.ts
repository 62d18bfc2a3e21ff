import { secondsOf } from '../accounts/guess-limits.ts';
import { failure, refused, tooManyRequests } from '../api/failures.ts';
import { absolutePath } from '../api/paths.ts';
import { NO_REFUSALS, type RefusalTable } from '../api/refusals.ts';
import type { ApiCall, ApiCaller } from '../api/route.ts';
import { optional, required, string } from '../api/schema.ts';
import type { Link } from './links.ts';
import { itemBelow, linkAt, type OpenLink, openLink, type SeenLink, seenByOwner } from './sharing.ts';
import { linkAddressIn } from './url.ts';

/** GetSharedLinkMetadataArg. `path` names an item inside a linked folder. */
export const linkFields = {
  url: required(string()),
  path: optional(absolutePath),
  link_password: optional(string()),
};

export interface LinkArgument {
  readonly url: string;
  readonly path?: string | undefined;
  readonly link_password?: string | undefined;
}

/** An item that disappears between the lookup and the read counts as an unknown link. */
export const LINK_REFUSALS: RefusalTable = { ...NO_REFUSALS, lookup: () => failure('shared_link_not_found') };

/** An open link as the caller sees it. */
export interface AccessedLink extends OpenLink, SeenLink {}

/** Opens a link for a caller with its URL and, if it has one, its password. Throws SharedLinkError. */
export async function accessLink(
  call: ApiCall<ApiCaller | undefined>,
  { url, path = '', link_password: password }: LinkArgument,
): Promise<AccessedLink> {
  const address = linkAddressIn(url);
  const linked = address && (await openLink(call, address));
  if (!linked || typeof linked === 'string') throw refused(failure('shared_link_not_found'));
  const caller = call.caller?.account;
  const isOwner = linked.account.id === caller?.id;
  if (!isOwner && !(await mayOpen(call, linked.link, password)))
    throw refused(failure('shared_link_access_denied'));
  const opened = await itemBelow(call, linked, [...address.below, ...path.split('/').filter(Boolean)]);
  if (!opened) throw refused(failure('shared_link_not_found'));
  return { ...opened, ...(isOwner ? seenByOwner(caller, opened.link, opened.item) : { isOwner }) };
}

/**
 * Returns the caller's link at a URL, to change it. Throws `malformed`, or that the link does not exist or is not the
 * caller's.
 */
export async function ownLink(call: ApiCall<ApiCaller>, url: string, malformed: string): Promise<Link> {
  const address = linkAddressIn(url);
  if (!address) throw refused(failure(malformed));
  const link = await linkAt(call, address);
  if (!link) throw refused(failure('shared_link_not_found'));
  if (link.accountId !== call.caller.account.id) throw refused(failure('shared_link_access_denied'));
  return link;
}

/**
 * Checks a link's password. Throws 429 for a client that guesses; guesses by API calls and on the page count together.
 */
async function mayOpen(
  { linkPasswords, address }: ApiCall<ApiCaller | undefined>,
  link: Link,
  password: string | undefined,
): Promise<boolean> {
  if (link.visibility === 'no_one') return false;
  if (!link.passwordHash) return true;
  if (password === undefined) return false;
  const outcome = await linkPasswords.check(link, password, address);
  if (typeof outcome === 'object') throw tooManyRequests(secondsOf(outcome));
  return outcome === 'right';
}
