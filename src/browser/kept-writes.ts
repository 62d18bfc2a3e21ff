import { DavError, requireWritable } from '../dav/errors.ts';
import { fileNameOf } from '../util/content-disposition.ts';
import { ROOT } from '../util/path.ts';
import { answerJson, type Context, type Route } from './route.ts';

/** Maximum number of writes in one answer. */
const LISTED_MAX = 1_000;

/** `kept-writes`: the writes that wait or were lost, oldest first. */
export const keptWrites: Route = {
  method: 'GET',
  async run({ exchange, drive }) {
    const all = (await drive.keptWrites?.list()) ?? [];
    const listed = all.slice(0, LISTED_MAX).map(({ id, state, path, sizeBytes, writtenMs, reason }) => ({
      ...{ id, state, path: path ?? null, sizeBytes },
      ...{ writtenMs: writtenMs ?? null, reason: reason ?? null },
    }));
    await answerJson(exchange, { writes: listed, leftOut: all.length - listed.length });
  },
};

/** `kept-write`: the bytes of the write `id`, to be saved and never shown as a page. */
export const keptWrite: Route = {
  method: 'GET',
  async run({ exchange, drive, input, signal }) {
    const found = await drive.keptWrites?.body(input.text('id'));
    if (!found) throw gone();
    const { response } = exchange;
    const name = found.write.path?.split('/').at(-1) ?? 'lost';
    const begin = () =>
      exchange.writeHead(200, {
        'Content-Type': 'application/octet-stream',
        'Content-Length': found.write.sizeBytes,
        'Content-Disposition': `attachment; ${fileNameOf(name)}`,
        'Content-Security-Policy': 'sandbox',
        'X-Content-Type-Options': 'nosniff',
        'Cache-Control': 'no-store',
      });
    for await (const piece of found.bytes) {
      // With the first bytes: until then a failure can be answered with its own status.
      if (!response.headersSent) begin();
      await exchange.write(piece);
      signal.throwIfAborted();
    }
    if (!response.headersSent) begin();
    response.end();
  },
};

/** `retry-write`: sends the write `id` again. Answers 409 with the reason if that fails. */
export const retryWrite: Route = { method: 'POST', run: (context) => command(context, 'retry') };

/** `discard-write`: deletes the write `id` for good. Answers 409 with the reason if that fails. */
export const discardWrite: Route = { method: 'POST', run: (context) => command(context, 'discard') };

async function command({ exchange, drive, input }: Context, how: 'retry' | 'discard'): Promise<void> {
  const id = input.text('id');
  if (!drive.keptWrites) throw gone();
  requireWritable(drive.isReadOnly, ROOT);
  const { refused } = await drive.keptWrites[how](id);
  if (refused !== undefined) throw new DavError(409, refused);
  await answerJson(exchange, {});
}

function gone(): DavError {
  return new DavError(
    404,
    'no pending or lost write has this id; it may have just reached the storage service',
  );
}
