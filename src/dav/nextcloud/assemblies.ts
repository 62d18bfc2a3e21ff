import type { PieceStore } from '../../state/pieces/piece-store.ts';
import type { UnfinishedUpload } from '../../state/pieces/stored-upload.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { overlaid } from '../../util/overlaid.ts';
import { keyOf, type Path } from '../../util/path.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { answerStored, checkedBody, type Stored, storeFile } from '../methods/store-file.ts';
import { overwriteOf } from '../request-headers.ts';
import { piecesInOrder } from './piece-order.ts';

/** How long an outcome is kept for a client that asks again, because it did not get the answer, in ms. */
const KEPT_MS = 15 * 60_000;
/** Maximum number of outcomes; the oldest are dropped beyond it. */
const KEPT_MAX = 1_000;

/** The pieces of an upload on their way to become a file, or the file that they have become. */
interface Assembly {
  /** A later upload with the same id is another object. */
  readonly upload: UnfinishedUpload;
  readonly path: Path;
  readonly outcome: Promise<Stored>;
  /** When the file was stored; `undefined` before. */
  storedAt: Instant | undefined;
}

/**
 * Puts the pieces of uploads together. This goes on when the client has gone: a proxy may end a request before a large file is
 * stored. The same MOVE again waits for the same outcome.
 */
export class Assemblies {
  readonly #assemblies = new Map<string, Assembly>();

  constructor(
    private readonly pieces: PieceStore,
    private readonly clock: Clock,
  ) {}

  /** Whether the pieces of the upload are becoming a file. */
  isRunning(user: string, upload: UnfinishedUpload): boolean {
    const assembly = this.#assemblies.get(keyFor(user, upload.id));
    return assembly?.upload === upload && assembly.storedAt === undefined;
  }

  /** Stores the pieces of the upload `id` as the file at the path of `context`, and answers like PUT. */
  async answer(context: Context, id: string): Promise<void> {
    const { principal, path } = context;
    this.#forgetOld();
    const upload = this.pieces.upload(principal, id);
    const last = this.#assemblies.get(keyFor(principal, id));
    const known = upload && last?.upload !== upload ? undefined : last;
    if (known && keyOf(known.path) !== keyOf(path))
      throw new DavError(409, `the pieces of ${id} become ${known.path}, as an earlier MOVE has asked`);
    const assembly = known ?? (upload && this.#begin(context, upload));
    if (!assembly) throw noUpload(id);
    await answerStored(context, await assembly.outcome);
  }

  #begin(context: Context, upload: UnfinishedUpload): Assembly {
    const { principal, path } = context;
    const key = keyFor(principal, upload.id);
    const outcome = this.#assemble(context, upload);
    const assembly: Assembly = { upload, path, outcome, storedAt: undefined };
    this.#assemblies.set(key, assembly);
    outcome.then(
      () => {
        assembly.storedAt = this.clock.instant();
      },
      () => {
        if (this.#assemblies.get(key) === assembly) this.#assemblies.delete(key);
      },
    );
    return assembly;
  }

  /** The pieces stay until the file is stored. */
  async #assemble(context: Context, { id, pieces }: UnfinishedUpload): Promise<Stored> {
    const { principal, request, exchange, log } = context;
    const ordered = piecesInOrder([...pieces.values()], totalBytesOf(request));
    const sizeBytes = ordered.reduce((sum, piece) => sum + piece.sizeBytes, 0);
    const contentFor = () => {
      const body = checkedBody(context, this.pieces.read(principal, id, ordered));
      return { body, sizeBytes };
    };
    const { signal } = new AbortController();
    const lasting = { ...context, exchange: overlaid(exchange, { signal }) };
    const isNew = !overwriteOf(request.headers);
    const stored = await storeFile(lasting, contentFor, { isPinned: false, signal, isNew });
    await this.pieces
      .remove(principal, id)
      .catch((error) =>
        log.warn('cannot remove the pieces of a file that is stored', { reason: String(error) }),
      );
    return stored;
  }

  #forgetOld(): void {
    for (const [key, { storedAt }] of this.#assemblies) {
      const isOld = storedAt !== undefined && elapsedMs(this.clock, storedAt) > KEPT_MS;
      if (isOld || (storedAt !== undefined && this.#assemblies.size > KEPT_MAX)) this.#assemblies.delete(key);
    }
  }
}

/** Returns the size of the whole file (`OC-Total-Length`), in bytes. */
export function totalBytesOf({ headers }: Context['request']): number | undefined {
  const text = String(headers['oc-total-length'] ?? '').trim();
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export function noUpload(id: string): DavError {
  return new DavError(404, `there is no upload ${id}: begin it with MKCOL, and send all pieces again`);
}

/** NUL separates the two: neither user names nor ids contain it. */
function keyFor(user: string, id: string): string {
  return `${user}\0${id}`;
}
