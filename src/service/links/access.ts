import { secondsOf } from '../accounts/guess-limits.ts';
import { failure, refused, tooManyRequests } from '../api/failures.ts';
import { absolutePath } from '../api/paths.ts';
import { NO_REFUSALS, type RefusalTable } from '../api/refusals.ts';
import type { ApiCall, ApiCaller } from '../api/route.ts';
import { optional, required, string } from '../api/schema.ts';
import type { Link } from './links.ts';
import { linkAt, type OpenLink, openLink } from './sharing.ts';
import { linkAddressIn } from './url.ts';

/** GetSharedLinkMetadataArg. `path` leads on inside a linked folder. */
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

/** What is gone when it is read was there when its link was opened. */
export const LINK_REFUSALS: RefusalTable = { ...NO_REFUSALS, lookup: () => failure('shared_link_not_found') };

export interface AccessedLink extends OpenLink {
  /** Who calls owns the link. */
  readonly isOwner: boolean;
}

/** What a link leads to, for who has the address and, where there is one, the password. Throws SharedLinkError. */
export async function accessLink(
  call: ApiCall<ApiCaller | undefined>,
  { url, path = '', link_password: password }: LinkArgument,
): Promise<AccessedLink> {
  const address = linkAddressIn(url);
  const below = path.split('/').filter(Boolean);
  const opened = address && openLink(call, { ...address, below: [...address.below, ...below] });
  if (!opened || typeof opened === 'string') throw refused(failure('shared_link_not_found'));
  const isOwner = opened.account.id === call.caller?.account.id;
  if (!isOwner && !(await mayOpen(call, opened.link, password)))
    throw refused(failure('shared_link_access_denied'));
  return { ...opened, isOwner };
}

/** The link at an address, to be changed. Throws the `malformed` error, or that it is not there or not the caller's. */
export function ownLink(call: ApiCall<ApiCaller>, url: string, malformed: string): Link {
  const address = linkAddressIn(url);
  if (!address) throw refused(failure(malformed));
  const link = linkAt(call, address);
  if (!link) throw refused(failure('shared_link_not_found'));
  if (link.accountId !== call.caller.account.id) throw refused(failure('shared_link_access_denied'));
  return link;
}

/** Throws 429 for a client that guesses: by calls or on the page, its guesses at a link are counted together. */
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
