import { DavError } from '../dav/errors.ts';
import { type Change, withRequestLock } from '../dav/locks/request-lock.ts';
import { FileError } from '../drive/errors.ts';
import { nameOf } from '../util/path.ts';
import { answerJson, type Context, type Route } from './route.ts';

/** `versions`: the versions of the file at `path`, newest first. */
export const versions: Route = {
  method: 'GET',
  async run({ exchange, drive, input, signal }) {
    const { files, currentRev, hasMore } = await drive.history.versions(input.path('path'), signal);
    const listed = files.map(({ rev, sizeBytes, modifiedMs, committedMs }) => ({
      ...{ rev, sizeBytes, modifiedMs, committedMs },
      isCurrent: rev === currentRev,
    }));
    await answerJson(exchange, { versions: listed, hasMore });
  },
};

/** `version`: the bytes of the version `rev` of the file at `path`, to be saved and never shown as a page. */
export const version: Route = {
  method: 'GET',
  async run({ exchange, drive, input, signal }) {
    const file = await drive.history.version(input.path('path'), input.text('rev'), signal);
    const headers = {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': 'attachment',
      'Content-Security-Policy': 'sandbox',
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-store',
    };
    const { response } = exchange;
    for await (const piece of drive.history.read(file, undefined, signal)) {
      // With the first bytes: until then a failure can be answered with its own status.
      if (!response.headersSent) exchange.writeHead(200, headers, file.sizeBytes);
      await exchange.write(piece);
      signal.throwIfAborted();
    }
    if (!response.headersSent) exchange.writeHead(200, headers, file.sizeBytes);
    response.end();
  },
};

/** `restore`: makes the version `rev` of the file at `path` the current one. */
export const restore: Route = {
  method: 'POST',
  changesDrive: true,
  async run(context) {
    const { exchange, drive, input, signal } = context;
    const [path, rev] = [input.path('path'), input.text('rev')];
    const entry = await drive.files.stat(path, signal);
    await unlessLocked(context, { path, membership: !entry }, () => drive.history.restore(path, rev));
    await answerJson(exchange, {});
  },
};

/** `trash`: what was deleted from the folder at `path`. */
export const trash: Route = {
  method: 'GET',
  async run({ exchange, drive, input, signal }) {
    const { items, leftOut } = await drive.history.trash(input.path('path'), signal);
    const listed = items.map(({ path, file, deletedMs }) => ({
      ...{ path, name: nameOf(path), kind: file ? 'file' : 'folder' },
      ...{ sizeBytes: file?.sizeBytes, modifiedMs: file?.modifiedMs, deletedMs },
    }));
    await answerJson(exchange, { items: listed, leftOut });
  },
};

/** `undelete`: brings back the file or folder that was deleted at `path`. Answers 412 when something is there again. */
export const undelete: Route = {
  method: 'POST',
  changesDrive: true,
  async run(context) {
    const { exchange, drive, input } = context;
    const path = input.path('path');
    try {
      await unlessLocked(context, { path, tree: true, membership: true }, () => drive.history.undelete(path));
    } catch (error) {
      // Elsewhere the fault is answered 405, which MKCOL needs; COPY and MOVE answer 412 too.
      if (!(error instanceof FileError) || error.fault !== 'exists') throw error;
      throw new DavError(412, error.message, { cause: error });
    }
    await answerJson(exchange, {});
  },
};

/**
 * Makes a change unless somebody has locked what it changes. That includes locks of the same user, whose token only the
 * program that took the lock knows. Throws `DavError` 423.
 */
function unlessLocked<T>(
  { user, drive, clock, exchange }: Context,
  change: Change,
  work: () => Promise<T>,
): Promise<T> {
  const request = { principal: user ?? '', drive, clock, exchange };
  return withRequestLock(request, { tokens: new Set() }, [change], work);
}
