import { ApiRefusal, BadCall, failure, refused, tooManyRequests, type WireFailure } from '../api/failures.ts';
import { fileMetadata } from '../api/metadata.ts';
import { exceptRoot, readPath } from '../api/paths.ts';
import { failureOf, LOOKUP } from '../api/refusals.ts';
import {
  type ApiCall,
  type ApiCaller,
  download,
  openDownload,
  type Route,
  rpc,
  WrittenResult,
} from '../api/route.ts';
import {
  boolean,
  list,
  optional,
  required,
  type Schema,
  type StructOf,
  string,
  struct,
  union,
  withDefault,
} from '../api/schema.ts';
import { type ReadableFile, readableFile, withFirstChunk } from '../content/file-content.ts';
import type { ServiceDeps } from '../deps.ts';
import { accessLink } from '../links/access.ts';
import { linkMetadata } from '../links/sharing.ts';
import { StorageError, type StoredFile } from '../storage/storage.ts';
import type { Wanted } from '../thumbnails/render.ts';
import { thumbnailOf } from '../thumbnails/thumbnail.ts';

/** SharedLinkFileInfo, flattened beside its tag. */
const linkResource = struct({
  '.tag': required(string()),
  url: required(string()),
  path: optional(string()),
  password: optional(string()),
});
const pathResource = union({ path: readPath });

type LinkResource = ReturnType<typeof linkResource>;

/** PathOrLink. */
const resource: Schema<{ readonly path: string } | { readonly link: LinkResource }> = (value) => {
  const isLink = typeof value === 'object' && value !== null && '.tag' in value && value['.tag'] === 'link';
  return isLink ? { link: linkResource(value) } : { path: pathResource(value).value };
};

/** ThumbnailArg and ThumbnailV2Arg without the file. */
const imageFields = {
  format: withDefault(union({ jpeg: null, png: null, webp: null }), { tag: 'jpeg' } as const),
  size: withDefault(
    union({
      w32h32: null,
      w64h64: null,
      w128h128: null,
      w256h256: null,
      w480h320: null,
      w640h480: null,
      w960h640: null,
      w1024h768: null,
      w2048h1536: null,
    }),
    { tag: 'w64h64' } as const,
  ),
  mode: withDefault(union({ strict: null, bestfit: null, fitone_bestfit: null, original: null }), {
    tag: 'strict',
  } as const),
  exclude_media_info: optional(boolean),
};

const thumbnail = openDownload({
  name: 'files/get_thumbnail_v2',
  scope: 'files.content.read',
  argument: { resource: required(resource), ...imageFields },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument } = call;
    const wanted = wantedOf(argument);
    const { source, result } =
      'link' in argument.resource
        ? await linkedFile(call, argument.resource.link)
        : await ownFile(call, userIn(call), argument.resource.path);
    const made = await imageOf(call, source, wanted);
    return { type: 'application/octet-stream', sizeBytes: made.length, result, bytes: sent(call, made) };
  },
});

/** The first version: only for the caller's own files, and with FileMetadata as the result. */
const thumbnailV1 = download({
  name: 'files/get_thumbnail',
  scope: 'files.content.read',
  argument: { path: required(readPath), ...imageFields },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller } = call;
    const { source } = await ownFile(call, caller, argument.path);
    const made = await imageOf(call, source, wantedOf(argument));
    const result = fileMetadata(source.file);
    return { type: 'application/octet-stream', sizeBytes: made.length, result, bytes: sent(call, made) };
  },
});

const BATCH_ENTRIES_MAX = 25;
/** Maximum size of the thumbnails of one answer, in bytes: images at their original size would take gigabytes. */
const BATCH_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum number of entries that are read. */
const BATCH_READ_MAX = 1000;

const batch = rpc({
  name: 'files/get_thumbnail_batch',
  host: 'content',
  scope: 'files.content.read',
  argument: {
    entries: required(list(struct({ path: required(readPath), ...imageFields }), { max: BATCH_READ_MAX })),
  },
  refusals: LOOKUP,
  handle: async (call) => {
    const { entries } = call.argument;
    if (entries.length > BATCH_ENTRIES_MAX) throw refused(failure('too_many_files'));
    return new WrittenResult(await withFirstChunk(batchJson(call, entries)));
  },
});

export const THUMBNAIL_ROUTES: readonly Route[] = [thumbnail, thumbnailV1, batch];

type BatchEntry = StructOf<typeof imageFields> & { readonly path: string };

/** Yields the JSON of GetThumbnailBatchResult. Each thumbnail is made when the client has taken the one before. */
async function* batchJson(
  call: ApiCall<ApiCaller>,
  entries: readonly BatchEntry[],
): AsyncGenerator<Uint8Array> {
  let leftBytes = BATCH_BYTES_MAX;
  let before = '{"entries":[';
  for (const entry of entries) {
    leftBytes -= yield* batchEntryJson(call, entry, before, leftBytes);
    before = ',';
  }
  yield Buffer.from(entries.length > 0 ? ']}' : `${before}]}`);
}

/** Size of a part of a thumbnail that is encoded at once, in bytes: a multiple of the three that become four letters. */
const ENCODED_BYTES = 192 * 1024;

/** Yields the JSON of GetThumbnailBatchResultEntry, with the text `before` it. Returns the size of the thumbnail. */
async function* batchEntryJson(
  call: ApiCall<ApiCaller>,
  entry: BatchEntry,
  before: string,
  bytesMax: number,
): AsyncGenerator<Uint8Array, number> {
  const made = await batchThumbnail(call, entry, bytesMax);
  if (!('image' in made)) {
    yield Buffer.from(before + JSON.stringify({ '.tag': 'failure', failure: made.value }));
    return 0;
  }
  const { file, image, release } = made;
  try {
    const metadata = JSON.stringify(fileMetadata(file));
    yield Buffer.from(`${before}{".tag":"success","metadata":${metadata},"thumbnail":"`);
    for (let start = 0; start < image.length; start += ENCODED_BYTES)
      yield Buffer.from(Buffer.from(image.subarray(start, start + ENCODED_BYTES)).toString('base64'));
    yield Buffer.from('"}');
    return image.length;
  } finally {
    release();
  }
}

interface BatchThumbnail {
  readonly file: StoredFile;
  readonly image: Uint8Array;
  /** To be called when the client has the image. */
  readonly release: () => void;
}

async function batchThumbnail(
  call: ApiCall<ApiCaller>,
  entry: BatchEntry,
  bytesMax: number,
): Promise<BatchThumbnail | WireFailure> {
  try {
    const { source } = await ownFile(call, call.caller, entry.path);
    // In a line, because an answer that has begun cannot ask the client to come back later.
    const image = await imageOf(call, source, wantedOf(entry), call.caller.account.id);
    const release = image.length <= bytesMax ? call.previews.hold(image.length) : undefined;
    return release ? { file: source.file, image, release } : failure('conversion_error');
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 409) return error.failure;
    // Even in a line, when the system has no process for it.
    if (error instanceof ApiRefusal && error.status === 429) return failure('conversion_error');
    const known = error instanceof StorageError ? failureOf(error, LOOKUP) : undefined;
    if (!known) throw error;
    return known;
  }
}

/** `Retry-After` while too many thumbnails wait to be rendered or read, or none can be rendered, in seconds. */
const RETRY_SECONDS = 5;

/** Returns the thumbnail; the call waits for it in a line, if one is named. Throws ThumbnailError's members, and 429. */
async function imageOf(
  call: ApiCall<unknown>,
  source: ReadableFile,
  wanted: Wanted,
  line?: string,
): Promise<Uint8Array> {
  const made = await thumbnailOf(call, source, wanted, { signal: call.signal, line });
  if (made === 'busy') throw tooManyRequests(RETRY_SECONDS);
  if (typeof made === 'string') throw refused(failure(made));
  return made;
}

interface Source {
  readonly source: ReadableFile;
  /** PreviewResult. */
  readonly result: object;
}

async function ownFile({ storage }: ServiceDeps, { account }: ApiCaller, path: string): Promise<Source> {
  const { namespace } = account;
  const file = readableFile(await storage.stat(namespace, exceptRoot(path, namespace), false));
  return { source: { namespace, file }, result: { file_metadata: fileMetadata(file) } };
}

/** Returns the linked file. `path` of ThumbnailV2Error is only for the caller's own files. */
async function linkedFile(
  call: ApiCall<ApiCaller | undefined>,
  { url, path, password }: LinkResource,
): Promise<Source> {
  try {
    const opened = await accessLink(call, { url, path, link_password: password });
    const file = readableFile(opened.item);
    const { url: fileUrl, id, path_lower } = linkMetadata(call, opened);
    const source = { namespace: opened.account.namespace, file };
    return { source, result: { link_metadata: { url: fileUrl, id, path: path_lower, rev: file.rev } } };
  } catch (error) {
    if (error instanceof StorageError) throw refused(failure('not_found'));
    const tag = error instanceof ApiRefusal ? error.failure.tags[0] : undefined;
    if (tag === 'shared_link_access_denied') throw refused(failure('access_denied'));
    if (tag === 'shared_link_not_found') throw refused(failure('not_found'));
    throw error;
  }
}

/** Returns the user. Throws for an app, which has no files. */
function userIn({ caller }: ApiCall<ApiCaller | undefined>): ApiCaller {
  if (!caller) throw new BadCall('An app without a user may request thumbnails of links only.');
  return caller;
}

function wantedOf({ format, size, mode }: StructOf<typeof imageFields>): Wanted {
  const [, width, height] = /^w(\d+)h(\d+)$/.exec(size.tag) ?? [];
  return { format: format.tag, mode: mode.tag, box: { width: Number(width), height: Number(height) } };
}

/** Yields the thumbnail. Throws 429 when too many large ones wait for their clients. */
async function* sent({ previews }: ServiceDeps, image: Uint8Array): AsyncGenerator<Uint8Array> {
  const release = previews.hold(image.length);
  if (!release) throw tooManyRequests(RETRY_SECONDS);
  try {
    yield image;
  } finally {
    release();
  }
}
