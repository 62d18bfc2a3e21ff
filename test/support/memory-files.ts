import { FileError } from '../../src/drive/errors.ts';
import type {
  Entry,
  FileEntry,
  Files,
  FolderEntry,
  FreeSpace,
  LinkSettings,
  Listing,
  RelocateOptions,
  RemoveOptions,
  SharedLink,
  WriteMode,
  WriteOptions,
  Written,
} from '../../src/drive/files.ts';
import type { DeadProperties } from '../../src/state/properties.ts';
import type { Clock } from '../../src/util/clock.ts';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { isWithin, join, keyOf, nameOf, type Path, parentOf, ROOT, relocate } from '../../src/util/path.ts';
import type { ByteRange } from '../../src/util/ranges.ts';
import { MemoryFileLinks } from './memory-links.ts';
import { MemoryTree } from './memory-tree.ts';

const PIECE_BYTES = 64 * 1024;

/** The names that the service refuses. */
const UNWANTED_NAME = /^.{256}/su;

/** A changing call of the protocol layer. */
export interface Call {
  readonly what: keyof Files;
  readonly path: Path;
  readonly options?: unknown;
}

export interface MemoryFilesParts {
  readonly clock: Clock;
  /** Store of the dead properties that copies take along. */
  readonly properties?: DeadProperties;
}

/** An implementation of `Files` in memory that can be made to fail. Content is pinned by revision. */
export class MemoryFiles implements Files {
  readonly calls: Call[] = [];
  /** The free space of an empty drive. */
  space: FreeSpace | undefined = { usedBytes: 1_000, availableBytes: 9_000 };
  /** Number of bytes after which a read fails. */
  readCutBytes: number | undefined;
  /** Number of running writes. */
  writing = 0;
  /** Awaited between the end of a write's body and its commit. */
  commitGate: Promise<void> | undefined;
  /** Number of running reads, and of those that ended before their last byte. */
  openReads = 0;
  abandonedReads = 0;
  readonly statForWrite: Files['statForWrite'] = (path, _how, signal) => this.stat(path, signal);

  readonly #tree = new MemoryTree();
  readonly #contents = new Map<string, Buffer>();
  readonly #held = new Set<string>();
  readonly #links = new MemoryFileLinks(this.#tree);
  readonly #failures = new Map<keyof Files, Error[]>();
  #made = 0;

  constructor(private readonly parts: MemoryFilesParts) {
    this.#tree.put({ kind: 'folder', id: 'id:root', path: ROOT, name: '' });
  }

  /** Makes the next call of `what` fail with `error` before it takes effect. */
  failNext(what: keyof Files, error: Error): void {
    this.#failures.set(what, [...(this.#failures.get(what) ?? []), error]);
  }

  /** Returns the content at `path`, or `undefined`. */
  contentAt(path: Path): Buffer | undefined {
    const entry = this.#tree.get(path);
    return entry?.kind === 'file' ? this.#contents.get(entry.rev) : undefined;
  }

  /** Returns all paths but the root's, sorted. Folders end with a slash. */
  paths(): string[] {
    return this.#tree
      .all()
      .filter((entry) => entry.path !== ROOT)
      .map((entry) => (entry.kind === 'folder' ? `${entry.path}/` : entry.path))
      .sort();
  }

  isHeld(path: Path): boolean {
    return this.#held.has(keyOf(path));
  }

  known(): undefined {}

  inMemory(): undefined {}

  async stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    this.#begin('stat', signal);
    return this.#tree.get(path);
  }

  async list(folder: Path, signal?: AbortSignal): Promise<Listing> {
    this.#begin('list', signal);
    return this.#listing(folder);
  }

  async *walk(folder: Path, signal?: AbortSignal): AsyncIterable<Listing> {
    this.#begin('walk', signal);
    const waiting = [folder];
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      signal?.throwIfAborted();
      const listing = this.#listing(next);
      yield listing;
      for (const child of listing.children) if (child.kind === 'folder') waiting.push(child.path);
    }
  }

  async *read(
    file: FileEntry,
    range: ByteRange | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    this.#begin('read', signal);
    const content = this.#contents.get(file.rev);
    if (!content) throw new FileError('not-found', `the revision of ${file.path} is gone`);
    const { start, end } = range ?? { start: 0, end: content.length };
    let at = start;
    this.openReads += 1;
    try {
      for (; at < end; at += PIECE_BYTES) {
        signal.throwIfAborted();
        if (this.readCutBytes !== undefined && at - start >= this.readCutBytes)
          throw new FileError('broken', 'the stored bytes are damaged');
        yield content.subarray(at, Math.min(at + PIECE_BYTES, end));
      }
    } finally {
      this.openReads -= 1;
      if (at < end) this.abandonedReads += 1;
    }
  }

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written> {
    this.#begin('write', signal, { path, options });
    const content = await this.#take(body, signal);
    if (options.sizeBytes !== undefined && options.sizeBytes !== content.length)
      throw new FileError('incomplete', `announced ${options.sizeBytes} bytes, got ${content.length}`);
    const old = this.#tree.get(path);
    this.#checkMode(path, old, options.mode);
    this.#held.delete(keyOf(path));
    return { entry: this.#putFile(path, content, options.modifiedMs), created: old === undefined };
  }

  async keepPlaceholder(path: Path, holdMs: number): Promise<Written> {
    this.#begin('keepPlaceholder', undefined, { path, options: { holdMs } });
    const old = this.#tree.get(path);
    if (old?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    if (old) return { entry: old, created: false };
    this.#parent(path);
    this.#held.add(keyOf(path));
    return { entry: this.#putFile(path, Buffer.alloc(0)), created: true };
  }

  async commitPlaceholder(path: Path): Promise<void> {
    this.#begin('commitPlaceholder', undefined, { path });
    this.#held.delete(keyOf(path));
  }

  async createFolder(path: Path): Promise<FolderEntry> {
    this.#begin('createFolder', undefined, { path });
    if (this.#tree.get(path)) throw new FileError('exists', `${path} is there already`);
    const folder: FolderEntry = {
      kind: 'folder',
      id: this.#newId(),
      path: join(this.#parent(path).path, nameOf(path)),
      name: nameOf(path),
      modifiedMs: this.parts.clock.now(),
    };
    this.#tree.put(folder);
    return folder;
  }

  async remove(path: Path, options: RemoveOptions): Promise<void> {
    this.#begin('remove', undefined, { path, options });
    notTheRoot(path);
    const entry = this.#present(path);
    if (options.rev !== undefined && (entry.kind !== 'file' || entry.rev !== options.rev))
      throw new FileError('changed', `${path} is not what was expected`);
    const gone = this.#removeTree(path);
    await this.parts.properties?.forget(gone.map((entry) => entry.id));
  }

  async copy(
    from: Path,
    to: Path,
    options: RelocateOptions & { readonly shallow: boolean },
  ): Promise<Written> {
    this.#begin('copy', undefined, { path: from, options: { to, ...options } });
    notTheRoot(from, to);
    this.#requireRevisions(from, to, options);
    const sources = options.shallow ? [this.#present(from)] : this.#tree.at(this.#present(from).path);
    const created = this.#makeRoom(from, to, options.overwrite);
    const root = this.#placeOf(to);
    const copies = sources.map((source): [Entry, Entry] => {
      const path = relocate(source.path, this.#present(from).path, root);
      return [source, { ...source, id: this.#newId(), path, name: nameOf(path), ...this.#copiedRev(source) }];
    });
    for (const [, copy] of copies) this.#tree.put(copy);
    for (const [source, copy] of copies) await this.parts.properties?.copy(source.id, copy.id);
    return { entry: this.#present(to), created };
  }

  async move(from: Path, to: Path, options: RelocateOptions): Promise<Written> {
    this.#begin('move', undefined, { path: from, options: { to, ...options } });
    notTheRoot(from, to);
    this.#requireRevisions(from, to, options);
    const old = this.#present(from).path;
    const isSame = keyOf(from) === keyOf(to);
    if (isSame && old === to) throw new FileError('into-itself', `${from} cannot be moved onto itself`);
    const created = !isSame && this.#makeRoom(from, to, options.overwrite);
    const root = this.#placeOf(to);
    const moved = this.#tree.at(old);
    for (const entry of moved) this.#drop(entry);
    for (const entry of moved) {
      const path = relocate(entry.path, old, root);
      this.#tree.put({ ...entry, path, name: nameOf(path) });
    }
    return { entry: this.#present(to), created };
  }

  async setModified(path: Path, modifiedMs: number): Promise<Entry> {
    this.#begin('setModified', undefined, { path, options: { modifiedMs } });
    const entry = { ...this.#present(path), modifiedMs };
    this.#tree.put(entry);
    return entry;
  }

  async freeSpace(signal?: AbortSignal): Promise<FreeSpace | undefined> {
    this.#begin('freeSpace', signal);
    const sizes = this.#tree.all().map((entry) => (entry.kind === 'file' ? entry.sizeBytes : 0));
    const storedBytes = sizes.reduce((sum, sizeBytes) => sum + sizeBytes, 0);
    return (
      this.space && {
        usedBytes: this.space.usedBytes + storedBytes,
        availableBytes: this.space.availableBytes - storedBytes,
      }
    );
  }

  async sharedLink(path: Path, signal?: AbortSignal): Promise<SharedLink | undefined> {
    this.#begin('sharedLink', signal);
    return this.#links.sharedLink(path);
  }

  async shareLink(path: Path, settings: LinkSettings): Promise<SharedLink> {
    this.#begin('shareLink', undefined, { path, options: settings });
    return this.#links.shareLink(path, settings);
  }

  async unshareLink(path: Path): Promise<void> {
    this.#begin('unshareLink', undefined, { path });
    return this.#links.unshareLink(path);
  }

  readonly sharedLinks: Files['sharedLinks'] = (path) => this.#links.sharedLinks(path);
  readonly createLink: Files['createLink'] = (...how) => this.#links.createLink(...how);
  readonly changeLink: Files['changeLink'] = (...how) => this.#links.changeLink(...how);
  readonly revokeLink: Files['revokeLink'] = (...how) => this.#links.revokeLink(...how);

  async #take(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    this.writing += 1;
    try {
      for await (const piece of body) {
        signal?.throwIfAborted();
        pieces.push(Buffer.from(piece));
      }
      await this.commitGate;
      signal?.throwIfAborted();
    } finally {
      this.writing -= 1;
    }
    return Buffer.concat(pieces);
  }

  #begin(what: keyof Files, signal: AbortSignal | undefined, call?: Omit<Call, 'what'>): void {
    if (call) this.calls.push({ what, ...call });
    signal?.throwIfAborted();
    const failure = this.#failures.get(what)?.shift();
    if (failure) throw failure;
  }

  #present(path: Path): Entry {
    const entry = this.#tree.get(path);
    if (!entry) throw new FileError('not-found', `there is nothing at ${path}`);
    return entry;
  }

  #requireRevisions(from: Path, to: Path, { rev, targetRev }: RelocateOptions): void {
    if (rev !== undefined) this.#checkMode(from, this.#tree.get(from), { if: 'rev', rev });
    if (targetRev !== undefined) this.#checkMode(to, this.#tree.get(to), { if: 'rev', rev: targetRev });
  }

  /** Returns the parent folder of `path`. */
  #parent(path: Path): FolderEntry {
    const parent = this.#tree.get(parentOf(path));
    if (parent?.kind !== 'folder')
      throw new FileError('parent-missing', `there is no folder ${parentOf(path)}`);
    if (UNWANTED_NAME.test(nameOf(path)))
      throw new FileError('bad-name', `the service does not take the name of ${path}`);
    return parent;
  }

  /** Returns `path` in the letter case of its parents. */
  #placeOf(path: Path): Path {
    return join(this.#parent(path).path, nameOf(path));
  }

  #listing(path: Path): Listing {
    const folder = this.#present(path);
    if (folder.kind !== 'folder') throw new FileError('not-a-folder', `${path} is a file`);
    return this.#tree.listing(folder);
  }

  #drop(entry: Entry): void {
    this.#tree.drop(entry);
    this.#held.delete(keyOf(entry.path));
  }

  #checkMode(path: Path, old: Entry | undefined, mode: WriteMode): void {
    if (old?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    if (mode.if === 'absent' && old) throw new FileError('changed', `${path} is there already`);
    if (mode.if === 'rev' && old?.rev !== mode.rev)
      throw new FileError('changed', `${path} is not at revision ${mode.rev}`);
    this.#parent(path);
  }

  #putFile(path: Path, content: Buffer, modifiedMs = this.parts.clock.now()): FileEntry {
    const old = this.#tree.get(path);
    const place = old?.path ?? this.#placeOf(path);
    const entry: FileEntry = {
      kind: 'file',
      id: old?.id ?? this.#newId(),
      path: place,
      name: nameOf(place),
      rev: this.#newRev(content),
      sizeBytes: content.length,
      contentHash: contentHashOf(content),
      modifiedMs,
      committedMs: this.parts.clock.now(),
    };
    this.#tree.put(entry);
    return entry;
  }

  /** Removes what is at `to`. Returns whether there was nothing. */
  #makeRoom(from: Path, to: Path, overwrite: boolean): boolean {
    if (isWithin(to, from) || isWithin(from, to))
      throw new FileError('into-itself', `${from} and ${to} lie within each other`);
    this.#parent(to);
    if (!this.#tree.get(to)) return true;
    if (!overwrite) throw new FileError('exists', `${to} is there already`);
    this.#removeTree(to);
    return false;
  }

  #removeTree(path: Path): Entry[] {
    const gone = this.#tree.at(path);
    for (const entry of gone) this.#drop(entry);
    return gone;
  }

  #copiedRev(source: Entry): { rev?: string; committedMs?: number } {
    if (source.kind === 'folder') return {};
    const rev = this.#newRev(this.#contents.get(source.rev) ?? Buffer.alloc(0));
    return { rev, committedMs: this.parts.clock.now() };
  }

  #newId(): string {
    return `id:${++this.#made}`;
  }

  #newRev(content: Buffer): string {
    const rev = `rev${(++this.#made).toString(16).padStart(9, '0')}`;
    this.#contents.set(rev, content);
    return rev;
  }
}

function notTheRoot(...paths: readonly Path[]): void {
  if (paths.includes(ROOT)) throw new FileError('forbidden', 'the root stays where it is');
}
