import { createHash } from 'node:crypto';
import { errorCodeOf } from '../../util/error-code.ts';
import { isConnectionLost } from '../postgres/away.ts';
import { DamagedBlockError } from '../storage/errors.ts';
import type { Row, Table } from '../storage/postgres/tables.ts';
import { compare, namespacesOf } from './comparison.ts';
import { CopyError, NotEmptyError } from './copy-error.ts';
import { DIRECTORY_TABLES } from './directory-tables.ts';
import { COPIED_TABLES, directoryQuery, NamespaceQueries } from './row-queries.ts';
import type { CopySource, CopyTarget, FilledTables, OuterBlock, ServicePlace } from './sides.ts';

/** Blocks that are read and stored at the same time; each is in memory meanwhile. */
const BLOCKS_AT_ONCE = 4;

/** Rows that are stored at once; of blocks fewer, because those have up to 64 KiB each. */
const ROWS_AT_ONCE = 2000;
const BLOCK_ROWS_AT_ONCE = 100;

/** What has been done so far. */
export interface CopyProgress {
  readonly step: 'blocks' | 'rows' | 'comparison';
  /** Blocks outside of the rows that have been looked at, and those that an earlier attempt had stored. */
  readonly blocks: number;
  readonly earlierBlocks: number;
  readonly bytes: number;
  readonly namespaces: number;
  /** Rows that are equal on both sides. */
  readonly rows: number;
}

/**
 * Copies a service to an empty place, or continues a copy that was interrupted. Changes nothing at the source. Throws
 * `CopyError`, `DataDirectoryError`, `BucketError` or `PostgresError`; no service opens the target until the copy has ended.
 */
export async function copyService(
  { from, to }: { readonly from: ServicePlace; readonly to: ServicePlace },
  onProgress: (progress: CopyProgress) => void,
): Promise<CopyProgress> {
  try {
    const source = await openSource(from);
    try {
      return await copyTo(to, source, onProgress);
    } finally {
      await source.close();
    }
  } catch (failure) {
    throw interrupted(failure);
  }
}

async function copyTo(
  to: ServicePlace,
  source: CopySource,
  onProgress: (progress: CopyProgress) => void,
): Promise<CopyProgress> {
  const target = await openTarget(to, source.keys.tag).catch((failure: unknown) => {
    if (failure instanceof NotEmptyError) return failure;
    throw failure;
  });
  if (target instanceof NotEmptyError) return await endedBefore(source, to, target);
  try {
    return await new Copy(source, target, onProgress).run();
  } finally {
    await target.close();
  }
}

/** Compares both sides: an earlier attempt may have ended before it could say so. Throws `refusal` if they differ. */
async function endedBefore(
  source: CopySource,
  to: ServicePlace,
  refusal: NotEmptyError,
): Promise<CopyProgress> {
  const target = await openSource(to).catch(() => {
    throw refusal;
  });
  try {
    if (target.keys.tag !== source.keys.tag) throw refusal;
    await source.refresh();
    await target.refresh();
    const rows = await compare(source, target).catch(() => {
      throw refusal;
    });
    return { ...NOTHING, step: 'comparison', rows };
  } finally {
    await target.close();
  }
}

/** Returns the error for the operator that a failure of a file system, a database or a network becomes. */
function interrupted(failure: unknown): unknown {
  const isForeign = errorCodeOf(failure) !== '' || isConnectionLost(failure);
  if (failure instanceof CopyError || !isForeign) return failure;
  return new CopyError(
    `the copy was interrupted (${String(failure)}): give the same command again, which continues it`,
    { cause: failure },
  );
}

async function openSource(from: ServicePlace): Promise<CopySource> {
  if ('dataDirectory' in from) return await (await import('./sqlite-source.ts')).openSqliteSource(from);
  return await (await import('./postgres-source.ts')).openPostgresSource(from);
}

async function openTarget(to: ServicePlace, tag: string): Promise<CopyTarget> {
  if ('dataDirectory' in to) return await (await import('./sqlite-target.ts')).openSqliteTarget(to, tag);
  return await (await import('./postgres-target.ts')).openPostgresTarget(to, tag);
}

const NOTHING: CopyProgress = {
  step: 'blocks',
  blocks: 0,
  earlierBlocks: 0,
  bytes: 0,
  namespaces: 0,
  rows: 0,
};

class Copy {
  #progress = NOTHING;

  constructor(
    private readonly source: CopySource,
    private readonly target: CopyTarget,
    private readonly onProgress: (progress: CopyProgress) => void,
  ) {}

  async run(): Promise<CopyProgress> {
    await this.#copyBlocks();
    await this.target.sync();
    await this.source.refresh();
    await this.target.fill(this.source.keys, async (tables) => {
      this.#note({ step: 'rows' });
      await this.#copyRows(tables);
      this.#note({ step: 'comparison' });
      // A service that was started meanwhile has changed the source.
      await this.source.refresh();
      this.#note({ rows: await compare(this.source, tables) });
    });
    return this.#progress;
  }

  #note(change: Partial<CopyProgress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.onProgress(this.#progress);
  }

  async #copyBlocks(): Promise<void> {
    const left = this.source.blocks()[Symbol.asyncIterator]();
    const begun = new Set<string>();
    let failed = false;
    const work = async () => {
      for (let next = await left.next(); !next.done && !failed; next = await left.next()) {
        const hash = next.value.hash.toString('base64');
        // Another namespace may have it too.
        if (begun.has(hash)) continue;
        begun.add(hash);
        await this.#copyBlock(next.value).catch((failure: unknown) => {
          failed = true;
          throw failure;
        });
      }
    };
    // All have ended before the sides are closed.
    const ends = await Promise.allSettled(Array.from({ length: BLOCKS_AT_ONCE }, work));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #copyBlock(block: OuterBlock): Promise<void> {
    const isThere = this.target.has(block);
    if (!isThere) await this.target.keep(block, await this.#read(block));
    const { blocks, earlierBlocks, bytes } = this.#progress;
    this.#note({
      blocks: blocks + 1,
      earlierBlocks: earlierBlocks + (isThere ? 1 : 0),
      bytes: bytes + (isThere ? 0 : block.sizeBytes),
    });
  }

  async #read(block: OuterBlock): Promise<Buffer> {
    try {
      return await this.source.read(block);
    } catch (failure) {
      if (failure instanceof DamagedBlockError) throw damaged(failure.message);
      throw failure;
    }
  }

  async #copyRows(tables: FilledTables): Promise<void> {
    const { storage, directory } = this.source;
    for (const namespace of await namespacesOf(storage)) {
      await tables.putNamespace(namespace);
      const queries = new NamespaceQueries(namespace[0], storage.dialect);
      for (const table of COPIED_TABLES)
        for await (const rows of storage.read(queries.copied(table), rowsAtOnce(table))) {
          if (table.name === 'block') rows.forEach(expectWhole);
          await tables.put(table, namespace, rows);
        }
      this.#note({ namespaces: this.#progress.namespaces + 1 });
    }
    for (const table of DIRECTORY_TABLES)
      for await (const rows of directory.read(directoryQuery(table, directory.dialect), ROWS_AT_ONCE))
        await tables.putInDirectory(table, rows);
  }
}

function rowsAtOnce({ name }: Table): number {
  return name === 'block' ? BLOCK_ROWS_AT_ONCE : ROWS_AT_ONCE;
}

/** Throws `CopyError` for a small block whose bytes are missing or have another hash. */
function expectWhole([, hash, , inline, bytes]: Row): void {
  if (inline !== 1) return;
  const isWhole =
    bytes instanceof Uint8Array &&
    createHash('sha256')
      .update(bytes)
      .digest()
      .equals(hash as Buffer); // the type of the column
  if (!isWhole) throw damaged(`block ${(hash as Buffer).toString('hex')} is damaged: its bytes have changed`);
}

function damaged(what: string): CopyError {
  return new CopyError(`${what}. Nothing is copied from a damaged source: restore it from a backup`);
}
