import { ApiError } from '../../src/api/errors.ts';
import type {
  Entry,
  LinkChange,
  LinkedEntry,
  LinkSettings,
  Remote,
  SharedLink,
} from '../../src/api/remote.ts';
import { FileError } from '../../src/drive/errors.ts';
import type { Files } from '../../src/drive/files.ts';
import type { Path } from '../../src/util/path.ts';
import type { CallScript } from './call-script.ts';
import type { MemoryStore } from './memory-store.ts';
import type { MemoryTree } from './memory-tree.ts';

/** Shared links by the id of their entry, of which each has one. */
class LinkTable {
  readonly #links = new Map<string, SharedLink>();

  of(id: string): SharedLink | undefined {
    return this.#links.get(id);
  }

  /** Returns the links of these entries. */
  ofAll(entries: readonly Entry[]): LinkedEntry[] {
    return entries.flatMap(({ id, kind, path }) => {
      const link = this.#links.get(id);
      return link ? [{ ...link, kind, path }] : [];
    });
  }

  put(id: string, url: string, { visibility = 'public', expiresMs }: LinkSettings): SharedLink {
    const link = { url, visibility, ...(expiresMs !== undefined && { expiresMs }) };
    this.#links.set(id, link);
    return link;
  }

  /** Returns the changed link; `undefined` if there is none. */
  change(url: string, { expiresMs, ...change }: LinkChange): SharedLink | undefined {
    const [id, old] = [...this.#links].find(([, link]) => link.url === url) ?? [];
    if (id === undefined || !old) return undefined;
    const { expiresMs: before, ...kept } = old;
    const after = expiresMs === 'never' ? undefined : (expiresMs ?? before);
    return this.put(id, url, { ...kept, ...change, ...(after !== undefined && { expiresMs: after }) });
  }

  /** Returns whether there was a link. */
  remove(url: string): boolean {
    const [id] = [...this.#links].find(([, link]) => link.url === url) ?? [];
    return id !== undefined && this.#links.delete(id);
  }
}

type LinkCalls = Pick<
  Remote,
  'sharedLink' | 'sharedLinks' | 'createSharedLink' | 'changeSharedLink' | 'revokeSharedLink'
>;

/** The calls of a `Remote` in memory for shared links. */
export class MemoryLinkCalls implements LinkCalls {
  readonly #table = new LinkTable();

  constructor(
    private readonly script: CallScript<keyof Remote>,
    private readonly store: MemoryStore,
  ) {}

  sharedLink(path: Path, signal?: AbortSignal) {
    return this.script.run('sharedLink', path, signal, () => this.#table.of(this.store.existing(path).id));
  }

  sharedLinks(path: Path | undefined, signal?: AbortSignal) {
    return this.script.run('sharedLinks', path ?? '', signal, () =>
      this.#table.ofAll(path === undefined ? this.store.entries : [this.store.existing(path)]),
    );
  }

  createSharedLink(path: Path, settings: LinkSettings, signal?: AbortSignal) {
    return this.script.run('createSharedLink', path, signal, () => {
      const { id } = this.store.existing(path);
      if (this.#table.of(id)) throw new ApiError('link-exists', 'there is one');
      checkPassword(settings);
      return this.#table.put(id, `https://links.example/${this.store.unique('l')}`, settings);
    });
  }

  changeSharedLink(url: string, change: LinkChange, signal?: AbortSignal) {
    return this.script.run('changeSharedLink', url, signal, () => {
      checkPassword(change);
      const link = this.#table.change(url, change);
      if (!link) throw new ApiError('link-gone', 'no such link');
      return link;
    });
  }

  revokeSharedLink(url: string, signal?: AbortSignal) {
    return this.script.run('revokeSharedLink', url, signal, () => {
      if (!this.#table.remove(url)) throw new ApiError('link-gone', 'no such link');
    });
  }
}

function checkPassword({ visibility, password }: LinkSettings | LinkChange): void {
  if (visibility === 'password' && !password) throw new ApiError('link-settings', 'no password');
}

type FileLinkMethods = Pick<
  Files,
  'sharedLink' | 'shareLink' | 'unshareLink' | 'sharedLinks' | 'createLink' | 'changeLink' | 'revokeLink'
>;

/** The methods of `Files` in memory for shared links. */
export class MemoryFileLinks implements FileLinkMethods {
  readonly #table = new LinkTable();
  #made = 0;

  constructor(private readonly tree: MemoryTree) {}

  async sharedLink(path: Path): Promise<SharedLink | undefined> {
    return this.#table.of(this.#entry(path).id);
  }

  async shareLink(path: Path, settings: LinkSettings): Promise<SharedLink> {
    const { id, name } = this.#entry(path);
    checkSettings(settings);
    const visibility = settings.visibility ?? (settings.password === undefined ? 'public' : 'password');
    const url = `https://share.example/${++this.#made}/${encodeURIComponent(name)}?dl=0`;
    return this.#table.put(id, url, { ...settings, visibility });
  }

  async unshareLink(path: Path): Promise<void> {
    const link = await this.sharedLink(path);
    if (link) this.#table.remove(link.url);
  }

  async sharedLinks(path: Path | undefined): Promise<readonly LinkedEntry[]> {
    return this.#table.ofAll(path === undefined ? this.tree.all() : [this.#entry(path)]);
  }

  async createLink(path: Path, settings: LinkSettings): Promise<SharedLink> {
    if (await this.sharedLink(path)) throw new FileError('exists', `${path} is shared already`);
    return this.shareLink(path, settings);
  }

  async changeLink(path: Path, url: string, change: LinkChange): Promise<SharedLink> {
    await this.#check(path, url);
    checkSettings(change);
    const link = this.#table.change(url, change);
    if (!link) throw new FileError('not-found', 'the link is gone');
    return link;
  }

  async revokeLink(path: Path, url: string): Promise<void> {
    await this.#check(path, url);
    this.#table.remove(url);
  }

  async #check(path: Path, url: string): Promise<void> {
    if ((await this.sharedLink(path))?.url !== url) throw new FileError('not-found', 'the link is gone');
  }

  #entry(path: Path): Entry {
    const entry = this.tree.get(path);
    if (!entry) throw new FileError('not-found', `there is nothing at ${path}`);
    return entry;
  }
}

function checkSettings({ visibility, password }: LinkSettings | LinkChange): void {
  if (visibility === 'password' && password === undefined)
    throw new FileError('unsupported', 'a link with a password needs one');
}
