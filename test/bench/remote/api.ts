import type { Upstream } from './upstream.ts';

type Where = Pick<Upstream, 'url' | 'token'>;

const MIB = 1024 * 1024;
/** Maximum number of entries of finish_batch_v2 and append_batch. */
const BATCH_MAX = 1000;
const PART_BYTES = 128 * MIB;

/** Calls an RPC function. */
async function call(where: Where, name: string, argument: unknown): Promise<unknown> {
  const answer = await fetch(`${where.url}/2/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${where.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(argument),
  });
  return jsonOf(name, answer);
}

/** Calls an upload-style function. */
export async function send(
  where: Where,
  name: string,
  argument: unknown,
  body: Uint8Array,
): Promise<unknown> {
  const answer = await fetch(`${where.url}/2/${name}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${where.token}`,
      'content-type': 'application/octet-stream',
      'dropbox-api-arg': JSON.stringify(argument),
    },
    body,
  });
  return jsonOf(name, answer);
}

async function jsonOf(name: string, answer: Response): Promise<unknown> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${name} was answered with ${answer.status}: ${text}`);
  return JSON.parse(text);
}

/** Makes small files, a thousand with three calls. */
export async function makeFiles(where: Where, paths: readonly string[], sizeBytes: number): Promise<void> {
  for (let start = 0; start < paths.length; start += BATCH_MAX) {
    const some = paths.slice(start, start + BATCH_MAX);
    const begun = await call(where, 'files/upload_session/start_batch', { num_sessions: some.length });
    const { session_ids: ids } = begun as { session_ids: string[] };
    const cursors = ids.map((id) => ({ session_id: id, offset: 0 }));
    const entries = cursors.map((cursor) => ({ cursor, length: sizeBytes, close: true }));
    const bodies = some.map((path) => Buffer.alloc(sizeBytes, path));
    await send(where, 'files/upload_session/append_batch', { entries }, Buffer.concat(bodies));
    await call(where, 'files/upload_session/finish_batch_v2', {
      entries: some.map((path, index) => ({
        cursor: { session_id: ids[index], offset: sizeBytes },
        commit: { path },
      })),
    });
  }
}

/** Makes one large file of a repeated pattern. */
export async function makeLargeFile(where: Where, path: string, sizeBytes: number): Promise<void> {
  const part = Buffer.alloc(PART_BYTES);
  for (let at = 0; at < PART_BYTES; at += 4096) part.fill(`${at} `, at, at + 4096);
  const begun = await send(where, 'files/upload_session/start', {}, Buffer.alloc(0));
  const { session_id } = begun as { session_id: string };
  for (let offset = 0; offset < sizeBytes; offset += PART_BYTES)
    await send(
      where,
      'files/upload_session/append_v2',
      { cursor: { session_id, offset } },
      part.subarray(0, sizeBytes - offset),
    );
  const commit = { cursor: { session_id, offset: sizeBytes }, commit: { path, mode: 'overwrite' } };
  await send(where, 'files/upload_session/finish', commit, Buffer.alloc(0));
}

/** Returns the sizes of the files in a folder, none if it does not exist. */
export async function sizesIn(where: Where, path: string): Promise<number[]> {
  const sizes: number[] = [];
  try {
    let page = (await call(where, 'files/list_folder', { path, limit: 2000 })) as Page;
    for (;;) {
      for (const { size } of page.entries) if (size !== undefined) sizes.push(size);
      if (!page.has_more) return sizes;
      page = (await call(where, 'files/list_folder/continue', { cursor: page.cursor })) as Page;
    }
  } catch (error) {
    if (String(error).includes('not_found')) return sizes;
    throw error;
  }
}

interface Page {
  readonly entries: readonly { readonly size?: number }[];
  readonly has_more: boolean;
  readonly cursor: string;
}
