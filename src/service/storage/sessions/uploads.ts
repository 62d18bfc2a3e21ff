import type { Clock } from '../../../util/clock.ts';
import { BLOCK_BYTES } from '../../../util/content-hash.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { BlockStore } from '../blocks/block-store.ts';
import type { StagedBlock } from '../blocks/block-writer.ts';
import { readBlock } from '../blocks/content-reader.ts';
import { stagePieces } from '../blocks/pieces.ts';
import { release, type Staged, stage } from '../blocks/staging.ts';
import { type Committer, eachInSavepoint, inSteps, type Transaction } from '../committer.ts';
import { DamagedBlockError } from '../errors.ts';
import {
  type Commit,
  type Incoming,
  type Outcome,
  type SessionPiece,
  StorageError,
  type StorageRefusal,
  type StoredFile,
  type UploadOptions,
} from '../storage.ts';
import { type Store, writeFile } from '../tree/entry-writes.ts';
import { storedFile } from '../tree/tree-rows.ts';
import type { PieceRow } from './session-rows.ts';
import { arePieces, type Joined, PiecesChanged, refused, type Sessions } from './sessions.ts';

/** A session and the number of bytes that the client believes it has. */
export interface SessionPoint {
  readonly session: string;
  readonly offset: number;
}

/** Refusals that keep no session: there is no room for one, or the answer cannot name it. */
const NOT_KEPT: ReadonlySet<string> = new Set<StorageRefusal['tag']>([
  'insufficient_space',
  'too_many_write_operations',
]);

/** All calls that take bytes. Each stages its bytes first and commits them when they are durable. */
export class Uploads {
  constructor(
    private readonly database: SqliteDatabase,
    private readonly store: Store,
    private readonly blocks: BlockStore,
    private readonly sessions: Sessions,
    private readonly committer: Committer,
    private readonly clock: Clock,
  ) {}

  /**
   * Uploads a file. An upload session may keep the bytes of a refused commit; the refusal names it (but see
   * `NOT_KEPT`).
   */
  upload(
    ns: number,
    commit: Commit,
    body: Incoming,
    { refusedBytes = 'kept', until, committing }: UploadOptions = {},
  ): Promise<StoredFile> {
    return this.#staged(body, 0, async (staged) => {
      committing?.();
      try {
        return await this.committer.run(
          (transaction) => this.#write(transaction, ns, commit, staged.blocks),
          until,
        );
      } catch (failure) {
        const isKept = failure instanceof StorageError && !NOT_KEPT.has(failure.refusal.tag);
        if (!isKept || refusedBytes === 'dropped') throw failure;
        const session = await this.#keepInSession(ns, staged);
        throw new StorageError(failure.refusal, failure.side, session);
      }
    });
  }

  /** Opens a session with its first bytes. Returns its id. */
  start(ns: number, kind: 'sequential' | 'concurrent', body: Incoming, close: boolean): Promise<string> {
    const concurrent = kind === 'concurrent';
    if (concurrent && close) throw refused('concurrent_session_close_not_allowed');
    return this.#staged(body, 0, (staged) => {
      if (concurrent && staged.sizeBytes > 0) throw refused('concurrent_session_data_not_allowed');
      return this.committer.run((transaction) => {
        const session = this.sessions.start(transaction, ns, concurrent);
        if (!concurrent) this.sessions.append(transaction, session, { offset: 0, ...staged, close });
        return session.id;
      });
    });
  }

  /** Adds a part. Refuses what it can before it takes the bytes. */
  append(ns: number, at: SessionPoint, body: Incoming, close: boolean): Promise<void> {
    this.sessions.checkOffset(this.sessions.find(ns, at.session, this.clock.now()), at.offset);
    return this.#staged(body, at.offset, (staged) => this.#append(ns, at, staged, close));
  }

  /** Adds pieces to several sessions; those of one session in the given order. */
  async appendBatch(
    ns: number,
    pieces: readonly SessionPiece[],
    body: Incoming,
  ): Promise<Outcome<'appended'>[]> {
    const staged = await stagePieces(this.blocks, pieces, body);
    const outcomes: Outcome<'appended'>[] = [];
    const append = async (index: number, { close, ...at }: SessionPiece, piece: Staged): Promise<void> => {
      try {
        await this.#append(ns, at, piece, close);
        outcomes[index] = 'appended';
      } catch (failure) {
        if (!(failure instanceof StorageError)) throw failure;
        outcomes[index] = failure;
      }
    };
    const lines = new Map<string, Promise<void>>();
    try {
      for (const [index, piece] of pieces.entries()) {
        const before = lines.get(piece.session) ?? Promise.resolve();
        const its = staged[index];
        if (its)
          lines.set(
            piece.session,
            before.then(() => append(index, piece, its)),
          );
      }
      await Promise.all(lines.values());
      return outcomes;
    } finally {
      await Promise.allSettled(lines.values());
      for (const { blocks } of staged) await release(this.blocks, blocks);
    }
  }

  /** Turns a session into a file, with the last bytes if there are any. */
  async finish(
    ns: number,
    { session, offset }: SessionPoint,
    commit: Commit,
    body: Incoming,
  ): Promise<StoredFile> {
    const { concurrent, closed, sizeBytes } = this.sessions.find(ns, session, this.clock.now());
    // Refused before the body is read; a closed or concurrent session takes no further bytes.
    if (!concurrent && !closed && offset !== sizeBytes) throw refused('incorrect_offset', sizeBytes);
    const end = await this.#staged(body, offset, async (staged) => {
      if (staged.sizeBytes === 0) return offset;
      if (concurrent) throw refused('concurrent_session_data_not_allowed');
      // The bytes stay appended even if the commit is refused: a retry comes with the new offset.
      await this.#append(ns, { session, offset }, staged, false);
      return offset + staged.sizeBytes;
    });
    return await untilUnchanged(async () => {
      const joined = await this.#joinTail(ns, { session, offset: end });
      return await this.#releasing(joined, () =>
        this.committer.run((transaction) =>
          this.#finish(transaction, ns, { session, offset: end }, commit, joined),
        ),
      );
    });
  }

  /** Finishes closed sessions. Each entry succeeds or fails on its own, several in one transaction. */
  finishBatch(
    ns: number,
    entries: readonly (SessionPoint & { readonly commit: Commit })[],
  ): Promise<Outcome<StoredFile>[]> {
    return inSteps(entries, this.committer.entriesMax, (next) =>
      untilUnchanged(() => this.#finishSome(ns, next)),
    );
  }

  /** Finishes the first entries, as many as one transaction takes. */
  async #finishSome(
    ns: number,
    entries: readonly (SessionPoint & { readonly commit: Commit })[],
  ): Promise<Outcome<StoredFile>[]> {
    const tails = new Map<string, Joined>();
    try {
      for (const at of entries) {
        const joined = tails.has(at.session) ? undefined : await this.#joinTail(ns, at);
        if (joined) tails.set(at.session, joined);
      }
      return await this.committer.run((transaction) =>
        eachInSavepoint(this.database, transaction, entries, ({ commit, ...at }) => {
          if (!this.sessions.find(ns, at.session, transaction.nowMs).closed) throw refused('not_closed');
          return this.#finish(transaction, ns, at, commit, tails.get(at.session));
        }),
      );
    } finally {
      for (const { block } of tails.values()) await release(this.blocks, [block]);
    }
  }

  #finish(
    transaction: Transaction,
    ns: number,
    { session, offset }: SessionPoint,
    commit: Commit,
    joined: Joined | undefined,
  ): StoredFile {
    const found = this.sessions.find(ns, session, transaction.nowMs);
    const file = this.#write(transaction, ns, commit, this.sessions.complete(found, offset, joined));
    this.sessions.drop(transaction, session);
    return file;
  }

  #write(transaction: Transaction, ns: number, commit: Commit, blocks: readonly StagedBlock[]): StoredFile {
    return storedFile(writeFile(this.store, transaction, ns, commit, blocks), this.store.directoryTag);
  }

  /** Commits a part whose bytes are durable. */
  async #append(ns: number, at: SessionPoint, staged: Staged, close: boolean): Promise<void> {
    const { session, offset } = at;
    await untilUnchanged(async () => {
      const joined = await this.#joinCompleted(ns, at, staged);
      await this.#releasing(joined, () =>
        this.committer.run((transaction) => {
          const found = this.sessions.find(ns, session, transaction.nowMs);
          this.sessions.append(transaction, found, { offset, ...staged, close }, joined);
        }),
      );
    });
  }

  /** Stores the bytes of an upload in a new session. Returns its id. */
  #keepInSession(ns: number, staged: Staged): Promise<string> {
    return this.committer.run((transaction) => {
      const session = this.sessions.start(transaction, ns, false);
      this.sessions.append(transaction, session, { offset: 0, ...staged, close: false });
      return session.id;
    });
  }

  /** Returns the block that the first bytes of a part complete, if earlier pieces of it exist. */
  async #joinCompleted(
    ns: number,
    { session, offset }: SessionPoint,
    { blocks }: Staged,
  ): Promise<Joined | undefined> {
    const pieces = this.sessions.piecesBefore(ns, session, { offset, blocks });
    return await this.#join(session, pieces, blocks[0]);
  }

  /** Returns the last block of a session that ends at `offset`, if it is in pieces. */
  async #joinTail(ns: number, { session, offset }: SessionPoint): Promise<Joined | undefined> {
    return await this.#join(session, this.sessions.tailPieces(ns, session, offset), undefined);
  }

  /** Joins consecutive pieces to one block, if there are any. Throws `PiecesChanged`. */
  async #join(
    session: string,
    pieces: readonly PieceRow[],
    last: StagedBlock | undefined,
  ): Promise<Joined | undefined> {
    const [first] = pieces;
    if (!first) return undefined;
    const { blocks: store } = this;
    const { contents } = this.store;
    const bytes = async function* () {
      for (const piece of pieces) yield await readBlock(store, contents, piece);
      if (last) yield last.bytes ?? (await store.read(last));
    };
    try {
      const { blocks } = await stage(store, { bytes: bytes(), bytesMax: BLOCK_BYTES });
      const [block] = blocks;
      return block && { start: first.start, block, pieces };
    } catch (failure) {
      // Another call has joined the pieces or ended the session while they were being read.
      const isGone = !arePieces(pieces, this.sessions.piecesAround(session, first.start));
      if (isGone && failure instanceof DamagedBlockError) throw new PiecesChanged();
      throw failure;
    }
  }

  /** Stages a body, and releases the blocks that `use` did not commit. */
  async #staged<T>(body: Incoming, offset: number, use: (staged: Staged) => Promise<T>): Promise<T> {
    const staged = await stage(this.blocks, body, offset);
    try {
      return await use(staged);
    } finally {
      await release(this.blocks, staged.blocks);
    }
  }

  async #releasing<T>(joined: Joined | undefined, use: () => Promise<T>): Promise<T> {
    try {
      return await use();
    } finally {
      if (joined) await release(this.blocks, [joined.block]);
    }
  }
}

/**
 * Repeats `attempt` until no other call has changed the pieces of its session meanwhile. Each such call has made
 * progress.
 */
async function untilUnchanged<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (failure) {
      if (!(failure instanceof PiecesChanged)) throw failure;
    }
  }
}
