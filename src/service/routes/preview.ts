import { endingOf } from '../../util/file-name.ts';
import { joinPieces } from '../../util/whole-body.ts';
import { failure, refused } from '../api/failures.ts';
import { fileMetadata } from '../api/metadata.ts';
import { exceptRoot, readPath, rev } from '../api/paths.ts';
import { LOOKUP } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, download, type MadeContent, type Route } from '../api/route.ts';
import { optional, required } from '../api/schema.ts';
import { type ReadableFile, readableFile } from '../content/file-content.ts';
import { textOf } from '../content/file-text.ts';

/** Maximum size of the beginning of a table that is read, in bytes. */
const TABLE_BYTES_MAX = 1024 * 1024;

/** A rendered file, without its metadata. */
type Rendition = Pick<MadeContent, 'type' | 'sizeBytes' | 'bytes'>;

/**
 * Returns a file as PDF or HTML. Formats of office programs are `unsupported_extension`, because there is no converter
 * for them here, and so are the formats that the real service does not convert.
 */
const preview = download({
  name: 'files/get_preview',
  scope: 'files.content.read',
  argument: { path: required(readPath), rev: optional(rev) },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    const address = argument.rev ? `rev:${argument.rev}` : exceptRoot(argument.path, namespace);
    const file = readableFile(await storage.stat(namespace, address, false));
    const render = RENDERERS.get(endingOf(file.name));
    if (!render) throw refused(failure('unsupported_extension'));
    return { ...(await render(call, { namespace, file })), result: fileMetadata(file) };
  },
});

export const PREVIEW_ROUTES: readonly Route[] = [preview];

type Render = (call: ApiCall<ApiCaller>, file: ReadableFile) => Promise<Rendition>;

/** By the ending of a name. */
const RENDERERS = new Map<string, Render>([
  ['ai', pdfInside],
  ['csv', tablePage],
]);

/**
 * Returns the PDF in an Illustrator file: Illustrator saves a PDF with its own data added; only files from before 2000
 * are PostScript.
 */
async function pdfInside(
  { storage }: ApiCall<ApiCaller>,
  { namespace, file }: ReadableFile,
): Promise<Rendition> {
  const mark = '%PDF-';
  const beginning = await joinPieces(storage.read(namespace, file, { start: 0, end: mark.length }));
  if (beginning.toString('latin1') !== mark) throw refused(failure('unsupported_content'));
  const bytes = storage.read(namespace, file, undefined, { lent: true });
  return { type: 'application/pdf', sizeBytes: file.sizeBytes, bytes };
}

async function tablePage(
  { storage, previews, signal }: ApiCall<ApiCaller>,
  shown: ReadableFile,
): Promise<Rendition> {
  const beginning = await textOf(storage, shown, TABLE_BYTES_MAX);
  if (!beginning) throw refused(failure('unsupported_content'));
  const { namespace, file } = shown;
  const { name } = file;
  const page = await previews.table.of(
    `${namespace} ${file.rev} ${name}`,
    async () => ({ name, ...beginning }),
    { signal },
  );
  if (page === 'busy') throw refused(failure('in_progress'));
  if (page === 'failed') throw refused(failure('unsupported_content'));
  const bytes = Buffer.from(page.markup);
  return { type: 'text/html; charset=utf-8', sizeBytes: bytes.length, bytes: only(bytes) };
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
