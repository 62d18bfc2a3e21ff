import { FileError } from '../../drive/errors.ts';
import { type PieceStore, TooManyPieces, UploadRemoved } from '../../state/pieces/piece-store.ts';
import type { UnfinishedUpload } from '../../state/pieces/stored-upload.ts';
import { namesOf, type Path } from '../../util/path.ts';
import { clientOf } from '../clients.ts';
import type { Access, Context, SharedContext } from '../context.ts';
import { DavError, requireWritable } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import { checkedBody } from '../methods/store-file.ts';
import { destinationOf } from '../request-headers.ts';
import { hrefOf, parseResourceUrl } from '../resource-url.ts';
import { ignoreBody, refuseBody } from '../unused-body.ts';
import { Assemblies, noUpload, totalBytesOf } from './assemblies.ts';
import { isPieceName } from './piece-order.ts';
import { answerUploads } from './upload-rows.ts';

/** The methods of each level: the user's folder, an upload, a piece. */
const ALLOWED = [
  'OPTIONS, PROPFIND',
  'OPTIONS, PROPFIND, MKCOL, DELETE',
  'OPTIONS, PROPFIND, PUT, DELETE, MOVE',
] as const;

/** The name of the file that the pieces of an upload become; MOVE puts it at its place. */
const WHOLE_FILE = '.file';

/** Maximum length of an upload's id, percent-encoded: the name of its folder on the disk. */
const ID_LENGTH_MAX = 200;

/** A request below `uploads/USER`. */
interface UploadRequest {
  readonly context: Context;
  /** The same request for `files/USER`, so that its `Destination` is a path of the drive. */
  readonly files: Exchange;
  readonly id: string;
  /** The name in the upload's folder: a piece, or `.file`. */
  readonly name: string;
}

/** The methods of unfinished uploads, as Nextcloud's clients call them: MKCOL, PUT of each piece, MOVE of `.file`. */
export class UploadMethods {
  readonly #assemblies: Assemblies;

  constructor(
    private readonly pieces: PieceStore,
    private readonly shared: SharedContext,
  ) {
    this.#assemblies = new Assemblies(pieces, shared.clock);
  }

  /** Throws `DavError` to refuse a request. */
  async answer(exchange: Exchange, files: Exchange, { user, drive }: Access): Promise<void> {
    const { request } = exchange;
    const { path, hasTrailingSlash } = parseResourceUrl(exchange.target);
    const principal = user?.name ?? '';
    const context = { exchange, request, path, hasTrailingSlash, principal, drive, ...this.shared };
    const [id = '', name = '', ...more] = namesOf(path);
    const level = [id, name].filter(Boolean).length;
    const allowed = ALLOWED[level] ?? '';
    const { method = '' } = request;
    if (!allowed.split(', ').includes(method) || more.length > 0)
      throw new DavError(405, `${method} is not possible at ${path} among the uploads`, {
        headers: { Allow: allowed },
      });
    if (drive.catchUp) await drive.catchUp();
    try {
      await this.#run(method, { context, files, id, name });
    } catch (error) {
      if (error instanceof TooManyPieces) throw new DavError(507, error.message, { cause: error });
      if (error instanceof UploadRemoved) throw noUpload(id);
      throw error;
    }
  }

  #run(method: string, request: UploadRequest): Promise<void> {
    if (method === 'PROPFIND') return this.#list(request);
    if (method === 'MKCOL') return this.#begin(request);
    if (method === 'PUT') return this.#putPiece(request);
    if (method === 'MOVE') return this.#finish(request);
    return method === 'DELETE' ? this.#remove(request) : answerOptions(request);
  }

  async #list({ context, id, name }: UploadRequest): Promise<void> {
    const { principal } = context;
    const uploads = id === '' ? this.pieces.uploadsOf(principal) : [this.#found(principal, id)];
    const piece = name === '' ? undefined : uploads[0]?.pieces.get(name);
    if (name !== '' && !piece) throw new DavError(404, `the upload ${id} has no piece ${name}`);
    await answerUploads(context, uploads, piece);
  }

  /** MKCOL of an upload. */
  async #begin({ context, files, id }: UploadRequest): Promise<void> {
    const { exchange, principal, path } = context;
    await refuseBody(exchange);
    checkDestination(context, files);
    if (encodeURIComponent(id).length > ID_LENGTH_MAX)
      throw new DavError(403, `the name of an upload may have ${ID_LENGTH_MAX} characters`);
    if (this.pieces.upload(principal, id)) throw new DavError(405, `there is an upload ${id} already`);
    await this.pieces.create(principal, id);
    const headers = { Location: hrefOf(exchange, path, true) };
    await exchange.answer({ status: 201, headers, body: undefined });
  }

  async #putPiece({ context, files, id, name }: UploadRequest): Promise<void> {
    const { exchange, principal, request } = context;
    if (!isPieceName(name))
      throw new DavError(403, `name a piece by its number, or by its first and last byte, not ${name}`);
    if (request.headers['content-range'] !== undefined)
      throw new DavError(400, 'a piece is sent whole, without Content-Range');
    this.#requireIdle(principal, this.#found(principal, id));
    await refuseBeyondSpace(context, checkDestination(context, files));
    const isNew = await this.pieces.add(principal, id, name, checkedBody(context));
    await exchange.answer({ status: isNew ? 201 : 204, headers: {}, body: undefined });
  }

  /** MOVE of `.file`: stores the file at the destination. The upload is over then. */
  async #finish({ context, files, id, name }: UploadRequest): Promise<void> {
    if (name !== WHOLE_FILE)
      throw new DavError(405, `only ${WHOLE_FILE} can be moved, when all pieces are there`, {
        headers: { Allow: ALLOWED[2] },
      });
    await ignoreBody(context.exchange);
    const { path, hasTrailingSlash } = destinationOf(files);
    requireWritable(context.drive.isReadOnly, path, clientOf(context.request).statusWhenReadOnly);
    await this.#assemblies.answer({ ...context, exchange: files, path, hasTrailingSlash }, id);
  }

  /** DELETE of an upload. Single pieces need none: a new one replaces one of the same name. */
  async #remove({ context, id, name }: UploadRequest): Promise<void> {
    const { exchange, principal } = context;
    await ignoreBody(exchange);
    this.#requireIdle(principal, this.#found(principal, id));
    if (name !== '') throw new DavError(403, 'send the piece again to replace it, or delete the upload');
    await this.pieces.remove(principal, id);
    await exchange.answer({ status: 204, headers: {}, body: undefined });
  }

  /** Throws `DavError` 404. */
  #found(user: string, id: string): UnfinishedUpload {
    const upload = this.pieces.upload(user, id);
    if (upload) return upload;
    throw noUpload(id);
  }

  /** Throws `DavError` 423 while the pieces become the file. */
  #requireIdle(user: string, upload: UnfinishedUpload): void {
    if (this.#assemblies.isRunning(user, upload))
      throw new DavError(
        423,
        `the pieces of ${upload.id} are being put together; repeat the MOVE to learn the outcome`,
      );
  }
}

async function answerOptions({ context, id, name }: UploadRequest): Promise<void> {
  await ignoreBody(context.exchange);
  const Allow = ALLOWED[[id, name].filter(Boolean).length] ?? '';
  await context.exchange.answer({ status: 200, headers: { DAV: '1, 3', Allow }, body: undefined });
}

/** Returns the destination, if the request has one. Throws `DavError` if the user may write neither there nor anywhere. */
function checkDestination({ drive, request }: Context, files: Exchange): Path | undefined {
  const { statusWhenReadOnly } = clientOf(request);
  if (drive.places?.every(({ isReadOnly }) => isReadOnly))
    throw new DavError(statusWhenReadOnly, 'read-only: you may read this drive, but not add anything to it');
  if (request.headers['destination'] === undefined) return undefined;
  const { path } = destinationOf(files);
  requireWritable(drive.isReadOnly, path, statusWhenReadOnly);
  return path;
}

/** Refuses a piece of a file for which there is no room, as far as the drive knows that already. */
async function refuseBeyondSpace(
  { drive, request, exchange }: Context,
  path: Path | undefined,
): Promise<void> {
  const totalBytes = totalBytesOf(request);
  if (totalBytes === undefined || path === undefined) return;
  const { signal } = exchange;
  // The pieces can be taken while the service is away.
  const space = await drive.files.freeSpace(signal, path).catch(() => undefined);
  const entry = drive.files.known(path);
  const neededBytes = totalBytes - (entry?.kind === 'file' ? entry.sizeBytes : 0);
  if (space && neededBytes > space.availableBytes)
    throw new FileError('no-space', `there is no room for ${path} and its ${totalBytes} bytes`);
}
