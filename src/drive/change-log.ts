import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Change, FeedChange, Page, Remote } from '../api/remote.ts';
import { isWithin, keyOf, type Path, parentKeyOf, ROOT } from '../util/path.ts';
import { type ChangeFeed, isCursorLost } from './cache/change-feed.ts';
import type { MetadataCache } from './cache/metadata-cache.ts';
import { fileErrorOf } from './errors.ts';
import type { ChangeLog, LoggedChanges } from './files.ts';
import type { LocalFiles } from './local-files.ts';
import { isWithinWaiting } from './names.ts';
import type { Placeholders } from './placeholders.ts';

interface ChangeLogDeps {
  readonly remote: Pick<Remote, 'latestCursor' | 'changesSince'>;
  readonly feed: Pick<ChangeFeed, 'readAll'>;
  readonly metadata: Pick<MetadataCache, 'ownChangesEnded'>;
  readonly localFiles: Pick<LocalFiles, 'owns' | 'within'>;
  readonly placeholders: Pick<Placeholders, 'within'>;
  /** Returns the revisions of the pending writes below a folder, by path. */
  readonly pendingBelow: (folder: Path) => ReadonlyMap<Path, string>;
  /** The drive's secret, 32 bytes. */
  readonly secret: () => Promise<Uint8Array>;
}

/** Maximum number of changed paths in one answer. After more changes a position is not valid any more. */
const CHANGED_MAX = 200_000;

/** Maximum number of pages of changes. Each has up to 2,000 changes, or none. */
const PAGES_MAX = 1_000;

/** Creates the log of a drive's changes on the cursors of the service. */
export function createChangeLog(deps: ChangeLogDeps): ChangeLog {
  const { remote, feed, metadata, localFiles, placeholders, pendingBelow } = deps;
  const seals = new Seals(deps.secret);

  /**
   * Resolves when reads show all that the service has reported: the cache knows the changes of others, and the changes of
   * davgate, during which it may still show what was before, have ended. An upload whose body is still coming is not waited
   * for: callers have read their cursor already, so what is committed from now on is among the changes after it.
   */
  const settled = async (signal: AbortSignal) => {
    await feed.readAll(signal);
    await metadata.ownChangesEnded(signal);
  };

  const isShown = (path: Path) => !isWithinWaiting(path) && !localFiles.owns(path);

  const pageAfter = async (cursor: string, signal: AbortSignal): Promise<Page<FeedChange> | undefined> => {
    try {
      return await remote.changesSince(cursor, signal);
    } catch (error) {
      if (isCursorLost(error)) return undefined;
      throw error;
    }
  };

  /** Returns `undefined` for a cursor that the service does not know any more, and after too many changes. */
  const read = async (
    folder: Path,
    cursor: string,
    signal: AbortSignal,
  ): Promise<LoggedChanges | undefined> => {
    const changes = new ChangedPaths(folder, isShown);
    let position = cursor;
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const page = await pageAfter(position, signal);
      if (!page) return undefined;
      for (const change of page.changes) changes.add(change);
      if (changes.hasLostFolder || changes.size > CHANGED_MAX) return undefined;
      position = page.cursor;
      if (!page.hasMore) return { ...changes.all(), position };
    }
    return undefined;
  };

  return {
    async position(folder, signal) {
      try {
        const cursor = await remote.latestCursor(signal);
        await settled(signal);
        return cursor;
      } catch (error) {
        throw fileErrorOf(error, folder);
      }
    },
    async since(folder, position, signal) {
      try {
        const found = await read(folder, position, signal);
        if (found) await settled(signal);
        return found;
      } catch (error) {
        throw fileErrorOf(error, folder);
      }
    },
    async unlogged(folder) {
      const [local, empty] = await Promise.all([localFiles.within(folder), placeholders.within(folder)]);
      const revisions = new Map([...empty, ...local].map(({ path, rev }) => [path, rev]));
      for (const [path, rev] of pendingBelow(folder)) revisions.set(path, rev);
      revisions.delete(folder);
      return revisions;
    },
    seal: (folder, content) => seals.seal(folder, content),
    unseal: (folder, text) => seals.open(folder, text),
  };
}

/** The changed paths below a folder, by key. */
class ChangedPaths {
  readonly #changed = new Map<string, Path>();
  readonly #deleted = new Set<string>();
  /** Whether it is unknown what the folder contained: it was deleted or replaced, or the feed cannot say what was removed. */
  hasLostFolder = false;

  constructor(
    private readonly folder: Path,
    private readonly isShown: (path: Path) => boolean,
  ) {}

  get size(): number {
    return this.#changed.size;
  }

  add(change: FeedChange): void {
    if (change.kind === 'unknown-below') this.#addUnknown(change.path);
    else this.#addChange(change);
  }

  #addChange(change: Change): void {
    const path = change.kind === 'put' ? change.entry.path : change.path;
    const leavesNothing = change.kind === 'deleted' || change.entry.kind === 'file';
    if (leavesNothing && isWithin(this.folder, path)) this.hasLostFolder = true;
    if (isWithin(this.folder, path) || !isWithin(path, this.folder) || !this.isShown(path)) return;
    const key = keyOf(path);
    this.#changed.set(key, path);
    if (change.kind === 'deleted') this.#deleted.add(key);
  }

  /** What was in `folder` matters unless it was deleted, which has been reported. */
  #addUnknown(folder: Path): void {
    const isConcerned = isWithin(folder, this.folder) || isWithin(this.folder, folder);
    if (isConcerned && !this.#isDeleted(keyOf(folder))) this.hasLostFolder = true;
  }

  #isDeleted(key: string): boolean {
    if (this.#deleted.has(key)) return true;
    return key !== ROOT && this.#isDeleted(parentKeyOf(key));
  }

  all(): Pick<LoggedChanges, 'changed' | 'deleted'> {
    const deleted = [...this.#deleted].flatMap((key) => this.#changed.get(key) ?? []);
    return { changed: [...this.#changed.values()], deleted };
  }
}

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts what clients keep. Each text is good for one folder. */
class Seals {
  #key: Promise<Uint8Array> | undefined;

  constructor(private readonly secret: () => Promise<Uint8Array>) {}

  async seal(folder: Path, content: Uint8Array): Promise<string> {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, await this.#secretKey(), iv).setAAD(Buffer.from(keyOf(folder)));
    const sealed = [cipher.update(content), cipher.final()];
    return Buffer.concat([iv, cipher.getAuthTag(), ...sealed]).toString('base64url');
  }

  async open(folder: Path, text: string): Promise<Uint8Array | undefined> {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length < IV_BYTES + TAG_BYTES) return undefined;
    const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
    const decipher = createDecipheriv(CIPHER, await this.#secretKey(), iv, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(keyOf(folder)))
      .setAuthTag(tag);
    try {
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  #secretKey(): Promise<Uint8Array> {
    // A failure is not kept.
    this.#key ??= this.secret().catch((error) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }
}
