/** A revision of the model; `rev` is its index. */
export interface ModelRevision {
  readonly rev: number;
  readonly key: string;
  readonly path: string;
  readonly id: number;
  readonly text: string;
}

/** A live entry; only files have `rev` and `text`. */
export interface ModelEntry {
  readonly path: string;
  readonly id: number;
  readonly rev?: number;
  readonly text?: string;
}

export type ModelMode = 'add' | 'overwrite' | { readonly rev: number };

/**
 * A model of the storage: maps, and walks through all of them. Each call returns the entry, or the refusal as
 * `kind/tag`.
 */
export class Model {
  entries = new Map<string, ModelEntry>();
  /** Deletions by path: whether it was a folder, and its id. */
  deleted = new Map<string, { readonly folder: boolean; readonly id: number }>();
  revisions: ModelRevision[] = [];
  #ids = 0;
  #revs = 0;

  /** Returns an independent copy. */
  copy(): Model {
    const copy = new Model();
    copy.entries = new Map(this.entries);
    copy.deleted = new Map(this.deleted);
    copy.revisions = [...this.revisions];
    copy.#ids = this.#ids;
    copy.#revs = this.#revs;
    return copy;
  }

  upload(
    path: string,
    text: string,
    mode: ModelMode,
    autorename: boolean,
    strict: boolean,
  ): ModelEntry | string {
    const existing = this.entries.get(key(path));
    const isUpdate = typeof mode === 'object';
    const asExpected = isUpdate && existing?.rev === mode.rev;
    const free = mode === 'overwrite' || asExpected;
    if (existing?.text === text && (free || !strict)) return existing;
    const writes = existing ? existing.rev !== undefined && free : !(isUpdate && strict);
    if (writes) return this.#writeFile(path, text);
    if (!autorename) return existing && existing.rev === undefined ? 'conflict/folder' : 'conflict/file';
    return this.#writeFile(existing ? this.#renamed(path, isUpdate ? 'copy' : 'file') : path, text);
  }

  createFolder(path: string, autorename: boolean): ModelEntry | string {
    const existing = this.entries.get(key(path));
    if (existing && !autorename) return existing.rev === undefined ? 'conflict/folder' : 'conflict/file';
    return this.#writeFolder(existing ? this.#renamed(path, 'folder') : path);
  }

  remove(path: string): ModelEntry | string {
    const entry = this.entries.get(key(path));
    if (!entry) return 'lookup/not_found';
    for (const [at, { id, rev }] of this.#at(key(path))) {
      this.entries.delete(at);
      this.deleted.set(at, { folder: rev === undefined, id });
    }
    return entry;
  }

  removeForever(path: string): string {
    const at = key(path);
    if (!this.entries.has(at) && !this.deleted.has(at)) return 'lookup/not_found';
    this.remove(path);
    const within = [...this.deleted.keys()].filter((other) => isAt(other, at));
    const gone = new Set(within.map((other) => this.deleted.get(other)?.id));
    for (const { id } of this.entries.values()) gone.delete(id);
    this.revisions = this.revisions.filter(({ key: other, id }) => !isAt(other, at) && !gone.has(id));
    for (const other of within) this.deleted.delete(other);
    for (const [other, { folder, id }] of [...this.deleted])
      if (!folder && gone.has(id) && !this.revisions.some((revision) => revision.key === other))
        this.deleted.delete(other);
    return 'done';
  }

  relocate(from: string, to: string, copy: boolean, autorename: boolean): ModelEntry | string {
    const source = this.entries.get(key(from));
    if (!source) return 'lookup/not_found';
    if (key(from) === key(to) && !copy) return source;
    if (key(to).startsWith(`${key(from)}/`)) {
      if (source.rev !== undefined) return 'conflict/file_ancestor';
      return copy ? 'relocation/duplicated_or_nested_paths' : 'relocation/cant_move_folder_into_itself';
    }
    const existing = this.entries.get(key(to));
    if (existing && !autorename) return existing.rev === undefined ? 'conflict/folder' : 'conflict/file';
    const target = existing ? this.#renamed(to, source.rev === undefined ? 'folder' : 'file') : to;
    if (this.#fileAbove(target)) return 'conflict/file_ancestor';
    const moving = this.#at(key(from));
    if (!copy) this.remove(from);
    for (const [, entry] of moving) {
      const path = target + entry.path.slice(source.path.length);
      const id = copy ? undefined : entry.id;
      if (entry.text === undefined) this.#writeFolder(path, id);
      else this.#writeFile(path, entry.text, id);
    }
    return this.entries.get(key(target)) ?? 'nothing';
  }

  restore(path: string, rev: number): ModelEntry | string {
    const existing = this.entries.get(key(path));
    if (existing && existing.rev === undefined) return 'conflict/folder';
    const revision = this.revisions.find((other) => other.rev === rev);
    const id = existing?.id ?? this.deleted.get(key(path))?.id;
    if (!revision || (revision.key !== key(path) && revision.id !== id)) return 'revision/invalid_revision';
    const livesElsewhere = [...this.entries.values()].some((entry) => entry.id === revision.id);
    const target = revision.key === key(path) ? revision.path : path;
    return this.#writeFile(target, revision.text, livesElsewhere ? undefined : revision.id);
  }

  /** Returns the texts of a path's revisions, newest first. */
  history(path: string): string[] {
    return this.revisions
      .filter((revision) => revision.key === key(path))
      .map(({ text }) => text)
      .reverse();
  }

  get paths(): string[] {
    return [...this.entries.values()].map(({ path }) => path).sort();
  }

  #writeFile(path: string, text: string, id?: number): ModelEntry | string {
    const existing = this.entries.get(key(path));
    const parent = existing ? '' : this.#writeParents(path);
    if (parent === undefined) return 'conflict/file_ancestor';
    const rev = this.#revs++;
    const entry = {
      path: existing?.path ?? parent + nameIn(path),
      id: existing?.id ?? id ?? this.#ids++,
      rev,
      text,
    };
    this.#put(entry);
    this.revisions.push({ ...entry, key: key(path) });
    return entry;
  }

  #writeFolder(path: string, id?: number): ModelEntry | string {
    const parent = this.#writeParents(path);
    if (parent === undefined) return 'conflict/file_ancestor';
    const entry = { path: parent + nameIn(path), id: id ?? this.#ids++ };
    this.#put(entry);
    return entry;
  }

  /**
   * Makes the parent folders. Returns the parent's display path with a slash, or `undefined` if a file is in
   * the way.
   */
  #writeParents(path: string): string | undefined {
    if (this.#fileAbove(path)) return undefined;
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (parent === '') return '/';
    const existing = this.entries.get(key(parent)) ?? this.#writeFolder(parent);
    return typeof existing === 'string' ? undefined : `${existing.path}/`;
  }

  #put(entry: ModelEntry): void {
    this.entries.set(key(entry.path), entry);
    this.deleted.delete(key(entry.path));
  }

  #fileAbove(path: string): boolean {
    return [...this.entries].some(
      ([other, { rev }]) => rev !== undefined && key(path).startsWith(`${other}/`),
    );
  }

  /** Returns the entries at a key and below it, parents first. */
  #at(at: string): [string, ModelEntry][] {
    return [...this.entries]
      .filter(([other]) => isAt(other, at))
      .sort(([one], [other]) => (one < other ? -1 : 1));
  }

  #renamed(path: string, style: 'file' | 'folder' | 'copy'): string {
    const name = nameIn(path);
    const dot = style === 'folder' ? -1 : name.lastIndexOf('.');
    const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
    for (let number = 0; ; number++) {
      if (number === 0 && style !== 'copy') continue;
      const plain = number === 0 ? ' (conflicted copy)' : ` (conflicted copy ${number})`;
      const candidate =
        path.slice(0, -name.length) + stem + (style === 'copy' ? plain : ` (${number})`) + extension;
      if (!this.entries.has(key(candidate))) return candidate;
    }
  }
}

/** Folds a path. The names in the tests need no more than `toLowerCase`. */
export function key(path: string): string {
  return path.toLowerCase();
}

function isAt(key: string, at: string): boolean {
  return key === at || key.startsWith(`${at}/`);
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
