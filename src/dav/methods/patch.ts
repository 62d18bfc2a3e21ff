import { createHash } from 'node:crypto';
import type { FileEntry } from '../../drive/files.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError, methodNotAllowed } from '../errors.ts';
import { checksumsOf, checksumsProperty } from '../properties/checksums.ts';
import { ignoreBody } from '../request.ts';
import { appended, updateRangeOf } from './append.ts';
import { answerStored, bodySignal, checkedBody, storeFile } from './put.ts';

/** The type of a body that is written into a file (https://sabre.io/dav/http-patch/). */
const PARTIAL_UPDATE = 'application/x-sabredav-partialupdate';

/** The algorithms of `X-Recalculate-Hash`. */
const HASHES = ['md5', 'sha1', 'sha256'] as const;

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
  const asked = String(request.headers['x-recalculate-hash']).trim().toLowerCase();
  const algorithm = HASHES.find((one) => one === asked);
  if (!algorithm) throw new DavError(400, `X-Recalculate-Hash must be ${HASHES.join(', ')}, not ${asked}`);
  const entry = await drive.files.stat(path, exchange.signal);
  if (!entry) throw new DavError(404, `${path} does not exist`);
  if (entry.kind === 'folder') throw methodNotAllowed(`${path} is a folder, which has no checksum`, entry);
  await checkConditions(context, entry);
  const { properties } = drive.state;
  const dead = (await properties.of([entry.id])).get(entry.id) ?? [];
  const known = /<checksum>([^<]*)<\/checksum>/.exec(checksumsOf(entry, dead) ?? '')?.[1]?.split(' ') ?? [];
  const name = `${algorithm.toUpperCase()}:`;
  const kept = known.find((one) => one.toUpperCase().startsWith(name));
  const checksum = kept ?? `${name}${await digestOf(context, entry, algorithm)}`;
  const property = kept ? undefined : checksumsProperty(entry, [...known, checksum]);
  if (property) await properties.change(entry.id, [{ set: property }]);
  await exchange.answer({ status: 204, headers: { 'OC-Checksum': checksum }, body: undefined });
}

async function digestOf({ drive, exchange }: Context, entry: FileEntry, algorithm: string): Promise<string> {
  const hash = createHash(algorithm);
  for await (const piece of drive.files.read(entry, undefined, exchange.signal)) hash.update(piece);
  return hash.digest('hex');
}
