import { ApiError, type ApiFailure } from '../../src/api/errors.ts';
import type {
  Change,
  CommitOptions,
  Entry,
  FileEntry,
  FolderEntry,
  LinkSettings,
  Page,
  Quota,
  Remote,
  SessionCommit,
  SharedLink,
  ShortContent,
} from '../../src/api/remote.ts';
import { contentHashOf } from '../../src/util/content-hash.ts';
import {
  isWithin,
  join,
  keyOf,
  nameOf,
  type Path,
  parentOf,
  pathOf,
  ROOT,
  relocate,
} from '../../src/util/path.ts';

interface Stored {
  readonly entry: Entry;
  readonly content: Uint8Array;
}

/** A method of `Remote` that a test can make fail or wait. */
export type Call = keyof Remote;

const EMPTY = new Uint8Array(0);

/**
 * A storage service in memory behind the lower seam: folded names, revisions, ids, cursors and a change feed
 * like the real one's. Calls are counted; a test can make the next call of a method fail, before or after
 * it took effect, or hold it at its beginning or at its end.
 */
export class MemoryRemote implements Remote {
  readonly calls: { readonly call: Call; readonly path: string }[] = [];
  pageEntries = 1000;
  permanentAllowed = true;
  /** `undefined`: the service names no limit. */
  allocatedBytes: number | undefined = 1_000_000_000;
  /** What was removed so that it can be recovered. */
  readonly trash: Entry[] = [];
  readonly #tree = new Map<string, Stored>();
  readonly #journal: Change[] = [];
  readonly #contents = new Map<string, Uint8Array>();
  readonly #sessions = new Map<string, Map<number, Uint8Array>>();
  readonly #links = new Map<string, SharedLink>();
  readonly #failures: { readonly call: Call; readonly error: unknown; readonly late: boolean }[] = [];
  readonly #gates: Gate[] = [];
  #count = 0;
  #nowMs = Date.UTC(2026, 0, 1);
  #wake: (() => void)[] = [];
  #isFeedHeld = false;

  // What a test does

  /** Makes the next `call` fail; `late`: after it took effect, as when an answer is lost. */
  failNext(call: Call, failure: ApiFailure | Error, { late = false } = {}): void {
    const error = typeof failure === 'string' ? new ApiError(failure, `${call} was made to fail`) : failure;
    this.#failures.push({ call, error, late });
  }

  /** Holds the next `call` before it does anything (`begin`), or its answer (`end`), until released. */
  holdNext(call: Call, at: 'begin' | 'end'): Gate {
    const gate = new Gate(call, at);
    this.#gates.push(gate);
    return gate;
  }

  /** Changes happen, but the feed tells nothing until `releaseFeed`. */
  holdFeed(): void {
    this.#isFeedHeld = true;
  }

  releaseFeed(): void {
    this.#isFeedHeld = false;
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** Makes all waiting and coming long polls fail until `true`. */
  isReachable = true;

  breakFeed(): void {
    this.isReachable = false;
    for (const wake of this.#wake.splice(0)) wake();
  }

  count(...calls: Call[]): number {
    return this.calls.filter(({ call }) => calls.length === 0 || calls.includes(call)).length;
  }

  /** Calls but those of the feed. */
  get questions(): number {
    return this.calls.filter(({ call }) => !['latestCursor', 'awaitChange', 'changesSince'].includes(call))
      .length;
  }

  /** Somebody else writes a file. */
  putFile(path: Path, text = '', modifiedMs?: number): FileEntry {
    const options: CommitOptions = { mode: { if: 'any' }, ...(modifiedMs !== undefined && { modifiedMs }) };
    return this.#commit(path, Buffer.from(text), options);
  }

  /** Somebody else makes a folder. */
  putFolder(path: Path): FolderEntry {
    return this.#makeFolder(path);
  }

  /** Somebody else deletes. */
  delete(path: Path): void {
    this.#remove(path);
  }

  /** Somebody else moves. */
  rename(from: Path, to: Path): void {
    this.#relocate(from, to, true);
  }

  /** Calls that have not come yet are not held any more. */
  forgetGates(): void {
    this.#gates.length = 0;
  }

  entryAt(path: Path): Entry | undefined {
    return this.#tree.get(keyOf(path))?.entry;
  }

  text(path: Path): string | undefined {
    const stored = this.#tree.get(keyOf(path));
    return stored?.entry.kind === 'file' ? Buffer.from(stored.content).toString() : undefined;
  }

  /** All paths, sorted. */
  get paths(): string[] {
    return [...this.#tree.values()].map(({ entry }) => entry.path as string).sort();
  }

  // Remote

  stat(path: Path, signal?: AbortSignal) {
    return this.#call('stat', path, signal, () => this.#tree.get(keyOf(path))?.entry);
  }

  async *list(
    folder: Path,
    { recursive }: { recursive: boolean },
    signal?: AbortSignal,
  ): AsyncIterable<Page> {
    const children = await this.#call('list', folder, signal, () => {
      const at = this.#tree.get(keyOf(folder));
      if (folder !== ROOT && !at) throw new ApiError('not-found', `${folder} is not there`);
      if (at?.entry.kind === 'file') throw new ApiError('not-folder', `${folder} is a file`);
      return this.#within(folder).filter(({ path }) => recursive || keyOf(parentOf(path)) === keyOf(folder));
    });
    let start = 0;
    do {
      const entries = children.slice(start, start + this.pageEntries);
      start += this.pageEntries;
      yield {
        changes: entries.map((entry) => ({ kind: 'put', entry })),
        cursor: `${this.#journal.length}`,
        hasMore: start < children.length,
      };
    } while (start < children.length);
  }

  latestCursor(signal?: AbortSignal) {
    return this.#call('latestCursor', ROOT, signal, () => {
      this.#mustBeReachable();
      return `${this.#journal.length}`;
    });
  }

  async awaitChange(cursor: string, _timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#call('awaitChange', cursor, signal, async () => {
      while (this.#isFeedHeld || Number(cursor) >= this.#journal.length) {
        this.#mustBeReachable();
        await aborted(signal, new Promise<void>((resolve) => this.#wake.push(resolve)));
      }
      return true;
    });
  }

  changesSince(cursor: string, signal?: AbortSignal) {
    return this.#call('changesSince', cursor, signal, () => {
      this.#mustBeReachable();
      const start = Number(cursor);
      if (!Number.isInteger(start)) throw new ApiError('reset', 'no such cursor');
      const end = this.#isFeedHeld ? start : Math.min(this.#journal.length, start + this.pageEntries);
      const hasMore = !this.#isFeedHeld && end < this.#journal.length;
      return { changes: this.#journal.slice(start, end), cursor: `${end}`, hasMore };
    });
  }

  download(file: FileEntry, range: { start: number; end: number } | undefined, signal?: AbortSignal) {
    return this.#call('download', file.path, signal, () => {
      const content = this.#contents.get(file.rev);
      if (!content) throw new ApiError('not-found', 'no such revision');
      const bytes = range ? content.subarray(range.start, range.end) : content;
      return { file, bytes: once(bytes) };
    });
  }

  upload(path: Path, body: Uint8Array, options: CommitOptions, signal?: AbortSignal) {
    const content = Uint8Array.from(body);
    return this.#call('upload', path, signal, () => this.#commit(path, content, options));
  }

  uploadsAtOnce() {
    return 1;
  }

  startSession(signal?: AbortSignal) {
    return this.#call('startSession', ROOT, signal, () => {
      const id = this.#unique('session');
      this.#sessions.set(id, new Map());
      return { id };
    });
  }

  appendSession(session: { id: string }, part: { offset: number; bytes: Uint8Array }, signal?: AbortSignal) {
    const bytes = Uint8Array.from(part.bytes);
    return this.#call('appendSession', session.id, signal, () => {
      const parts = this.#sessions.get(session.id);
      if (!parts) throw new ApiError('session-gone', 'no such session');
      parts.set(part.offset, bytes);
    });
  }

  finishSession({ session, path, options }: SessionCommit, signal?: AbortSignal) {
    return this.#call('finishSession', path, signal, () => {
      const parts = this.#sessions.get(session.id);
      if (!parts) throw new ApiError('session-gone', 'no such session');
      const ordered = [...parts].sort(([one], [other]) => one - other).map(([, bytes]) => bytes);
      const entry = this.#commit(path, Buffer.concat(ordered), options);
      this.#sessions.delete(session.id);
      return entry;
    });
  }

  async stageContents(contents: readonly ShortContent[], signal?: AbortSignal) {
    const sessions = await Promise.all(contents.map(() => this.startSession(signal)));
    for (const [index, session] of sessions.entries())
      await this.appendSession(session, { offset: 0, bytes: contents[index]?.bytes ?? EMPTY }, signal);
    return sessions;
  }

  async finishSessions(
    commits: readonly SessionCommit[],
    signal?: AbortSignal,
    onOutcome: (index: number, outcome: FileEntry | Error) => void = () => {},
  ) {
    const outcomes: (FileEntry | Error)[] = [];
    for (const [index, commit] of commits.entries()) {
      const outcome = await this.finishSession(commit, signal).catch((error: Error) => error);
      outcomes.push(outcome);
      onOutcome(index, outcome);
    }
    return outcomes;
  }

  createFolder(path: Path, signal?: AbortSignal) {
    return this.#call('createFolder', path, signal, () => {
      mustBeTaken(path);
      this.#mustBeFree(path);
      return this.#makeFolder(path);
    });
  }

  remove(
    path: Path,
    { permanent, id, rev }: { permanent: boolean; id?: string; rev?: string },
    signal?: AbortSignal,
  ) {
    return this.#call('remove', path, signal, () => {
      if (permanent && !this.permanentAllowed) throw new ApiError('not-allowed', 'not for this account');
      mustBeTaken(path);
      const stored = this.#existing(path);
      if (id !== undefined && stored.entry.id !== id) throw new ApiError('not-found', 'another one is there');
      if (rev !== undefined && !(stored.entry.kind === 'file' && stored.entry.rev === rev))
        throw new ApiError('conflict-file', 'it has changed');
      if (!permanent) this.trash.push(stored.entry);
      for (const entry of permanent ? [stored.entry, ...this.#within(path)] : [])
        if (entry.kind === 'file') this.#contents.delete(entry.rev);
      this.#remove(path);
    });
  }

  readonly copy = (from: Path, to: Path, signal?: AbortSignal) => {
    return this.#call('copy', `${from} → ${to}`, signal, () => this.#relocate(from, to, false));
  };

  readonly move = (from: Path, to: Path, signal?: AbortSignal) => {
    return this.#call('move', `${from} → ${to}`, signal, () => this.#relocate(from, to, true));
  };

  quota(signal?: AbortSignal) {
    return this.#call('quota', ROOT, signal, (): Quota | undefined => {
      const { allocatedBytes } = this;
      const sizes = [...this.#tree.values()].map(({ content }) => content.byteLength);
      const usedBytes = sizes.reduce((sum, size) => sum + size, 0);
      return allocatedBytes === undefined ? undefined : { usedBytes, allocatedBytes };
    });
  }

  sharedLink(path: Path, signal?: AbortSignal) {
    return this.#call('sharedLink', path, signal, () => this.#links.get(this.#existing(path).entry.id));
  }

  createSharedLink(path: Path, settings: LinkSettings, signal?: AbortSignal) {
    return this.#call('createSharedLink', path, signal, () => {
      const { id } = this.#existing(path).entry;
      if (this.#links.has(id)) throw new ApiError('link-exists', 'there is one');
      const { visibility = 'public', password, expiresMs } = settings;
      if (visibility === 'password' && !password) throw new ApiError('link-settings', 'no password');
      const url = `https://links.example/${this.#unique('l')}`;
      const link = { url, visibility, ...(expiresMs !== undefined && { expiresMs }) };
      this.#links.set(id, link);
      return link;
    });
  }

  revokeSharedLink(url: string, signal?: AbortSignal) {
    return this.#call('revokeSharedLink', url, signal, () => {
      const [found] = [...this.#links].filter(([, link]) => link.url === url);
      if (!found) throw new ApiError('link-gone', 'no such link');
      this.#links.delete(found[0]);
    });
  }

  // How it works

  async #call<T>(
    call: Call,
    path: string,
    signal: AbortSignal | undefined,
    work: () => T | Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    this.calls.push({ call, path });
    // As over a network, others get their turn meanwhile.
    await new Promise<void>((resolve) => setImmediate(resolve));
    await this.#gate(call, 'begin', signal);
    const index = this.#failures.findIndex((failure) => failure.call === call);
    const [failure] = index < 0 ? [] : this.#failures.splice(index, 1);
    if (failure && !failure.late) throw failure.error;
    const result = await work();
    if (failure) throw failure.error;
    await this.#gate(call, 'end', signal);
    return result;
  }

  async #gate(call: Call, at: 'begin' | 'end', signal: AbortSignal | undefined): Promise<void> {
    const index = this.#gates.findIndex((gate) => gate.call === call && gate.at === at);
    if (index < 0) return;
    const [gate] = this.#gates.splice(index, 1);
    await gate?.pass(signal);
  }

  #commit(path: Path, content: Uint8Array, { mode, modifiedMs }: CommitOptions): FileEntry {
    mustBeTaken(path);
    const old = this.#tree.get(keyOf(path))?.entry;
    if (old?.kind === 'folder') throw new ApiError('conflict-folder', `a folder is at ${path}`);
    if (mode.if === 'absent' && old) throw new ApiError('conflict-file', `a file is at ${path}`);
    const contentHash = contentHashOf(content);
    if (mode.if !== 'absent' && old?.contentHash === contentHash) return old;
    if (mode.if === 'rev' && old?.rev !== mode.rev)
      throw new ApiError('conflict-file', `${path} has changed`);
    this.#makeParents(path);
    const committedMs = this.#tick();
    const wholeMs = Math.floor((modifiedMs ?? committedMs) / 1000) * 1000;
    const entry: FileEntry = {
      kind: 'file',
      id: old?.id ?? this.#unique('id:'),
      path: old?.path ?? this.#displayed(path),
      name: old?.name ?? nameOf(path),
      rev: this.#unique('rev'),
      sizeBytes: content.byteLength,
      contentHash,
      modifiedMs: wholeMs,
      committedMs,
    };
    this.#put(entry, content);
    return entry;
  }

  #makeFolder(path: Path): FolderEntry {
    const old = this.#tree.get(keyOf(path))?.entry;
    if (old?.kind === 'file') throw new ApiError('conflict-ancestor', `${path} is a file`);
    if (old) return old;
    this.#makeParents(path);
    const entry: FolderEntry = {
      kind: 'folder',
      id: this.#unique('id:'),
      path: this.#displayed(path),
      name: nameOf(path),
    };
    this.#put(entry, EMPTY);
    return entry;
  }

  #relocate(from: Path, to: Path, isMove: boolean): Entry {
    mustBeTaken(from);
    mustBeTaken(to);
    const source = this.#existing(from);
    // Like the service, which does not change only the case of a name.
    if (isMove && keyOf(from) === keyOf(to)) return source.entry;
    if (isWithin(to, from)) throw new ApiError('into-itself', `${to} lies in ${from}`);
    this.#mustBeFree(to);
    this.#makeParents(to);
    const top = this.#displayed(to);
    const moving = [source.entry, ...this.#within(from)].map((entry) => ({
      entry,
      content: this.#tree.get(keyOf(entry.path))?.content ?? EMPTY,
    }));
    if (isMove) this.#remove(from);
    for (const { entry, content } of moving) {
      const path = relocate(entry.path, source.entry.path, top);
      const id = isMove ? entry.id : this.#unique('id:');
      const place = { id, path, name: nameOf(path) };
      if (entry.kind === 'folder') this.#put({ ...entry, ...place }, EMPTY);
      else this.#put({ ...entry, ...place, rev: this.#unique('rev'), committedMs: this.#tick() }, content);
    }
    return this.#existing(to).entry;
  }

  #remove(path: Path): void {
    const { entry } = this.#existing(path);
    for (const each of [entry, ...this.#within(path)]) this.#tree.delete(keyOf(each.path));
    this.#tell({ kind: 'deleted', path: entry.path });
  }

  #put(entry: Entry, content: Uint8Array): void {
    this.#tree.set(keyOf(entry.path), { entry, content });
    if (entry.kind === 'file') this.#contents.set(entry.rev, content);
    this.#tell({ kind: 'put', entry });
  }

  #tell(change: Change): void {
    this.#journal.push(change);
    if (!this.#isFeedHeld) for (const wake of this.#wake.splice(0)) wake();
  }

  #existing(path: Path): Stored {
    const stored = this.#tree.get(keyOf(path));
    if (!stored) throw new ApiError('not-found', `${path} is not there`);
    return stored;
  }

  #mustBeFree(path: Path): void {
    const kind = this.#tree.get(keyOf(path))?.entry.kind;
    if (kind) throw new ApiError(`conflict-${kind}`, `something is at ${path}`);
  }

  #mustBeReachable(): void {
    if (!this.isReachable) throw new ApiError('offline', 'the feed is broken');
  }

  #makeParents(path: Path): void {
    if (parentOf(path) !== ROOT) this.#makeFolder(parentOf(path));
  }

  /** In the letter case of the parents that are there. */
  #displayed(path: Path): Path {
    const parent = this.#tree.get(keyOf(parentOf(path)))?.entry.path ?? ROOT;
    return join(parent, nameOf(path));
  }

  #within(path: Path): Entry[] {
    const below = (entry: Entry) => keyOf(entry.path) !== keyOf(path) && isWithin(entry.path, path);
    return [...this.#tree.values()].map(({ entry }) => entry).filter(below);
  }

  #unique(kind: string): string {
    this.#count++;
    return `${kind}${this.#count}`;
  }

  #tick(): number {
    this.#nowMs += 1000;
    return this.#nowMs;
  }
}

/** One call that a test holds. */
export class Gate {
  /** Resolves when the call has come here. */
  readonly reached: Promise<void>;
  readonly #open: Promise<void>;
  #reach: () => void = () => {};
  /** Lets the call go on. */
  release: () => void = () => {};

  constructor(
    readonly call: Call,
    readonly at: 'begin' | 'end',
  ) {
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    this.#open = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  async pass(signal: AbortSignal | undefined): Promise<void> {
    this.#reach();
    await aborted(signal, this.#open);
  }
}

/** The path of a text like `/a/b`. */
export function at(text: string): Path {
  return text === '/' ? ROOT : pathOf(text.slice(1).split('/'));
}

/** Refuses what the service refuses to make, change or remove. */
function mustBeTaken(path: Path): void {
  const name = nameOf(path);
  if (path === ROOT) throw new ApiError('no-permission', 'not the root');
  if (/^(\.ds_store|thumbs\.db|desktop\.ini)$/i.test(name)) throw new ApiError('disallowed-name', name);
  if (/\\|\s$/.test(name) || name.length > 255) throw new ApiError('malformed-path', name);
}

/** Waits for `work`, or rejects with the reason of `signal`. */
async function aborted(signal: AbortSignal | undefined, work: Promise<void>): Promise<void> {
  let leave = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal?.reason);
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave, { once: true });
  });
  try {
    await Promise.race([work, left]);
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}
