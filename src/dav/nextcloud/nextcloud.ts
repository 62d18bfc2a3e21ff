import type { PieceStore } from '../../state/pieces/piece-store.ts';
import { pathBelow } from '../../util/base-path.ts';
import { overlaid } from '../../util/overlaid.ts';
import { namesOf } from '../../util/path.ts';
import type { Access, DavHandler, SharedContext } from '../context.ts';
import { DavError, refuseReserved } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import { answerFailure } from '../failures.ts';
import { destinationOf } from '../request-headers.ts';
import { hrefOf, parseResourceUrl, withoutHost } from '../resource-url.ts';
import { UploadMethods } from './upload-methods.ts';

/** The path below which Nextcloud serves files and uploads. */
const NEXTCLOUD_PATH = '/remote.php/dav';

/** Matches nearly all other targets: they need no decoding. */
const ELSEWHERE = /^\/(?![/%r])/;

/** A request target below that path: area, user, and the path below. */
const ADDRESS = /^\/+(files|uploads)\/+([^/?#]+)(.*)$/s;

/** Returns what follows Nextcloud's path in a request target, in any spelling of it; `undefined` for another target. */
function belowNextcloud(target: string): string | undefined {
  return ELSEWHERE.test(target) ? undefined : pathBelow(NEXTCLOUD_PATH, withoutHost(target));
}

/** Whether a request is for one of the addresses below that path, and not for the drive. */
export function isForNextcloud({ target }: Exchange): boolean {
  return belowNextcloud(target) !== undefined;
}

interface NextcloudOptions extends SharedContext {
  /** Answers a request for the drive. */
  readonly handle: DavHandler;
  /** `undefined`: files cannot be sent in pieces. */
  readonly pieces: PieceStore | undefined;
}

/**
 * Creates the handler of the addresses at which Nextcloud's clients send large files in pieces: `files/USER` is the drive, and
 * `uploads/USER` has the pieces.
 */
export function createNextcloud({ handle, pieces, ...shared }: NextcloudOptions): DavHandler {
  const uploads = pieces && new UploadMethods(pieces, shared);
  return async (exchange, access) => {
    try {
      const [, area, user = '', below = ''] = ADDRESS.exec(belowNextcloud(exchange.target) ?? '') ?? [];
      if (area === undefined)
        throw new DavError(
          404,
          `nothing here: the drive is at ${exchange.prefix}${NEXTCLOUD_PATH}/files/USER/`,
        );
      requireOwn(user, access);
      const files = inFolder(exchange, `${NEXTCLOUD_PATH}/files/${user}`, below);
      if (exchange.request.headers['destination'] !== undefined) refuseReserved(destinationOf(files).path);
      if (area === 'uploads') {
        if (!uploads) throw new DavError(404, 'this davgate takes no uploads in pieces');
        const there = inFolder(exchange, `${NEXTCLOUD_PATH}/uploads/${user}`, below);
        return await uploads.answer(there, files, access);
      }
      const { path } = parseResourceUrl(files.target);
      refuseReserved(path);
      if (!isPage(exchange)) return await handle(files, access);
      const headers = { Location: hrefOf(exchange, path, true) };
      await exchange.answer({ status: 302, headers, body: undefined });
    } catch (error) {
      await answerFailure(exchange, shared.log, error);
    }
  };
}

/** Returns the exchange as one for the path below a folder, which is a part of its prefix then. */
function inFolder(exchange: Exchange, folder: string, below: string): Exchange {
  const target = below.startsWith('/') ? below : `/${below}`;
  return overlaid(exchange, { prefix: exchange.prefix + folder, target });
}

/** Throws `DavError` 403 unless the user is the one in the address. Without logins, every name is right. */
function requireOwn(segment: string, { user }: Access): void {
  const [name = ''] = namesOf(parseResourceUrl(`/${segment}`).path);
  if (user && name !== user.name)
    throw new DavError(403, `this address is for the user ${name}; your login is that of ${user.name}`);
}

/** Whether a browser asks for a folder: the web application is at the drive's own address only. */
function isPage({ request, target }: Exchange): boolean {
  const [path = ''] = target.split('?', 1);
  return (
    request.method === 'GET' && path.endsWith('/') && /\btext\/html\b/.test(String(request.headers.accept))
  );
}
