import type { FileEntry } from '../../drive/files.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError, methodNotAllowed } from '../errors.ts';
import { checksumListOf } from '../properties/checksums.ts';
import { checksumIn } from '../properties/computed-checksums.ts';
import { ignoreBody } from '../unused-body.ts';
import { appended, updateRangeOf } from './append.ts';
import { answerStored, bodySignal, checkedBody, storeFile } from './store-file.ts';

/** The type of a body that is written into a file (https://sabre.io/dav/http-patch/). */
const PARTIAL_UPDATE = 'application/x-sabredav-partialupdate';

/** The algorithms of `X-Recalculate-Hash`. */
const HASHES = ['MD5', 'SHA1', 'SHA256'] as const;

/** PATCH: SabreDAV's partial update, as far as it appends to a file, and the checksum that Nextcloud's clients ask for. */
export async function patch(context: Context): Promise<void> {
  const { headers } = context.request;
  if (headers['x-recalculate-hash'] !== undefined) return answerHash(context);
  const [type = ''] = String(headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== PARTIAL_UPDATE)
    throw new DavError(
      415,
      `PATCH appends to a file: send the bytes with Content-Type: ${PARTIAL_UPDATE} and X-Update-Range: append`,
    );
  await append(context);
}

async function append(context: Context): Promise<void> {
  const { path, exchange } = context;
  const range = updateRangeOf(exchange);
  const contentFor = (entry: FileEntry | undefined) => {
    if (!entry)
      throw new DavError(404, `${path} does not exist; PATCH appends to a file, and PUT creates one`);
    return appended(context, entry, range, checkedBody(context));
  };
  const how = { isPinned: true, signal: bodySignal(context) };
  await answerStored(context, await storeFile(context, contentFor, how));
}

/**
 * Answers with a checksum of the file's content, and keeps it for listings. rclone asks for it after it has set the time of a
 * file, because Nextcloud forgets the checksums then.
 */
async function answerHash(context: Context): Promise<void> {
  const { drive, path, exchange, request } = context;
  await ignoreBody(exchange);
  const asked = String(request.headers['x-recalculate-hash']).trim().toUpperCase();
  const algorithm = HASHES.find((one) => one === asked);
  if (!algorithm) throw new DavError(400, `X-Recalculate-Hash must be ${HASHES.join(', ').toLowerCase()}`);
  const entry = await drive.files.stat(path, exchange.signal);
  if (!entry) throw new DavError(404, `${path} does not exist`);
  if (entry.kind === 'folder') throw methodNotAllowed(`${path} is a folder, which has no checksum`, entry);
  await checkConditions(context, entry);
  const dead = (await drive.state.properties.of([entry.id])).get(entry.id) ?? [];
  const checksums = await context.checksums.of(context, entry, checksumListOf(entry, dead), [algorithm]);
  const headers = { 'OC-Checksum': checksumIn(checksums, algorithm) };
  await exchange.answer({ status: 204, headers, body: undefined });
}
