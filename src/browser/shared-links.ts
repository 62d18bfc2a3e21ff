import { DavError } from '../dav/errors.ts';
import { FileError } from '../drive/errors.ts';
import type { LinkChange, SharedLink } from '../drive/files.ts';
import { answerJson, type Input, type Route } from './route.ts';

/** The last moment that a timestamp of the service can name, in ms since 1970. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** `links`: the shared links of all entries of the drive, or of exactly `path`. */
export const links: Route = {
  method: 'GET',
  async run({ exchange, signal, drive, input }) {
    const path = input.optional('path') === undefined ? undefined : input.path('path');
    await answerJson(exchange, { links: await drive.files.sharedLinks(path, signal) });
  },
};

/** `share`: makes the link of `path`, with a `password` and with a time at which it `expires`, if they are given. */
export const share: Route = {
  method: 'POST',
  changesDrive: true,
  async run({ exchange, drive, input }) {
    const [path, password, expiresMs] = [input.path('path'), input.optional('password'), expiryIn(input)];
    const link = drive.files.createLink(path, {
      ...(password !== undefined && { visibility: 'password' as const, password }),
      ...(expiresMs !== undefined && { expiresMs }),
    });
    await answerJson(exchange, await unlessShared(link));
  },
};

/**
 * `change-link`: changes the link `url` of `path`. A `password` replaces the old one, and the `visibility` `public` removes
 * it. `expires` is a time or `never`.
 */
export const changeLink: Route = {
  method: 'POST',
  changesDrive: true,
  async run({ exchange, drive, input }) {
    const change: LinkChange = { ...visibilityIn(input), ...expiryChangeIn(input) };
    if (Object.keys(change).length === 0)
      throw new DavError(400, 'no change was sent; send "password", "visibility" or "expires"');
    const link = await drive.files.changeLink(input.path('path'), input.text('url'), change);
    await answerJson(exchange, link);
  },
};

/** `unshare`: revokes the link `url` of `path`. */
export const unshare: Route = {
  method: 'POST',
  changesDrive: true,
  async run({ exchange, drive, input }) {
    await drive.files.revokeLink(input.path('path'), input.text('url'));
    await answerJson(exchange, {});
  },
};

/** Throws `DavError` 409 where there is a link already: 405 would name the methods of a resource. */
async function unlessShared(link: Promise<SharedLink>): Promise<SharedLink> {
  try {
    return await link;
  } catch (error) {
    if (error instanceof FileError && error.fault === 'exists')
      throw new DavError(409, error.message, { cause: error });
    throw error;
  }
}

function visibilityIn(input: Input): LinkChange {
  const [password, visibility] = [input.optional('password'), input.optional('visibility')];
  if (visibility === undefined) return password === undefined ? {} : { visibility: 'password', password };
  if (visibility === 'public' && password === undefined) return { visibility };
  throw new DavError(400, '"visibility" can only be public, and without a password');
}

function expiryChangeIn(input: Input): LinkChange {
  const expiresMs = input.optional('expires') === 'never' ? 'never' : expiryIn(input);
  return expiresMs === undefined ? {} : { expiresMs };
}

/** Returns the time in `expires`. Throws `DavError` 400. */
export function expiryIn(input: Input): number | undefined {
  const text = input.optional('expires');
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (ms <= LAST_MS) return ms;
  throw new DavError(400, '"expires" is no time; send it as 2030-01-31T12:00:00Z');
}
