import { namesOf, type Path, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type {
  Entry,
  Files,
  FolderEntry,
  LinkedEntry,
  Listing,
  NameSearch,
  Thumbnails,
  Written,
} from '../files.ts';
import type { MountedRoot, Mounts, Place } from './mounts.ts';

/** The files of several drives, or of a folder of one, as a user sees them. */
export function viewFiles(mounts: Mounts): Files & NameSearch & Thumbnails {
  const shownEntry = (mount: MountedRoot, entry: Entry | undefined) => entry && mount.shown(entry);
  const shownWrite = (mount: MountedRoot, { entry, created }: Written) => ({
    entry: mount.shown(entry),
    created,
  });
  const both = (from: Path, to: Path): readonly [Place, Place] => {
    const [source, target] = [mounts.placeBelow(from), mounts.placeBelow(to)];
    if (source.mount.drive === target.mount.drive) return [source, target];
    throw new FileError(
      'forbidden',
      `cannot copy or move ${from} to ${to}: they are in different drives; download it and upload it there`,
    );
  };
  const top = new TopListing(mounts);

  return {
    known(path) {
      const place = mounts.find(path);
      if (!place) return path === ROOT ? mounts.top : undefined;
      const { mount } = place;
      return mount.isReady ? shownEntry(mount, mount.drive.files.known(place.path)) : undefined;
    },
    async stat(path, signal) {
      const place = mounts.find(path);
      if (!place) return path === ROOT ? mounts.top : undefined;
      await place.mount.ready();
      return shownEntry(place.mount, await place.mount.files.stat(place.path, signal));
    },
    async statForWrite(path, options, signal) {
      const place = mounts.find(path);
      if (!place && namesOf(path).length > 1) return undefined;
      const { mount, path: inner } = place ?? mounts.place(path);
      await mount.ready();
      return shownEntry(mount, await mount.files.statForWrite(inner, options, signal));
    },
    async list(folder, signal) {
      if (folder === ROOT && !mounts.find(ROOT)) return top.current(signal);
      const { mount, path } = mounts.place(folder);
      await mount.ready();
      return mount.listing(await mount.files.list(path, signal));
    },
    async *walk(folder, signal) {
      if (folder === ROOT && !mounts.find(ROOT)) yield await top.current(signal);
      const places = (mounts.find(folder) ?? folder !== ROOT) ? [mounts.place(folder)] : top.places();
      for (const { mount, path } of places) {
        await mount.ready();
        for await (const listing of mount.files.walk(path, signal)) yield mount.listing(listing);
      }
    },
    inMemory(file) {
      const { mount, file: original } = mounts.original(file);
      return mount.drive.files.inMemory(original);
    },
    read(file, range, signal) {
      const { mount, file: original } = mounts.original(file);
      return mount.files.read(original, range, signal);
    },
    async write(path, body, options, signal) {
      const { mount, path: inner } = mounts.placeOfFile(path);
      return shownWrite(mount, await mount.files.write(inner, body, options, signal));
    },
    async keepPlaceholder(path, waitMs) {
      const { mount, path: inner } = mounts.placeOfFile(path);
      return shownWrite(mount, await mount.files.keepPlaceholder(inner, waitMs));
    },
    async commitPlaceholder(path) {
      const place = mounts.find(path);
      await place?.mount.files.commitPlaceholder(place.path);
    },
    async createFolder(path) {
      const { mount, path: inner } = mounts.place(path);
      return mount.shown(await mount.files.createFolder(inner));
    },
    async remove(path, options) {
      const { mount, path: inner } = mounts.placeBelow(path);
      await mount.files.remove(inner, options);
    },
    async copy(from, to, options) {
      const [source, target] = both(from, to);
      return shownWrite(target.mount, await target.mount.files.copy(source.path, target.path, options));
    },
    async move(from, to, options) {
      const [source, target] = both(from, to);
      return shownWrite(target.mount, await target.mount.files.move(source.path, target.path, options));
    },
    async setModified(path, modifiedMs) {
      const { mount, path: inner } = mounts.place(path);
      return mount.shown(await mount.files.setModified(inner, modifiedMs));
    },
    async freeSpace(signal, path = ROOT) {
      const place = mounts.find(path);
      return place?.mount.files.freeSpace(signal, place.path);
    },
    async sharedLink(path, signal) {
      const place = mounts.find(path);
      return place?.mount.files.sharedLink(place.path, signal);
    },
    async shareLink(path, settings) {
      const { mount, path: inner } = mounts.place(path);
      return mount.files.shareLink(inner, settings);
    },
    async unshareLink(path) {
      const { mount, path: inner } = mounts.place(path);
      return mount.files.unshareLink(inner);
    },
    async sharedLinks(path, signal) {
      if (path === ROOT && !mounts.find(ROOT)) return [];
      const asked = path === undefined ? mounts.all.map((mount) => ({ mount })) : [mounts.place(path)];
      const links = asked.map(async (place: { readonly mount: MountedRoot; readonly path?: Path }) =>
        shownLinks(place.mount, await place.mount.files.sharedLinks(place.path, signal)),
      );
      return (await Promise.all(links)).flat();
    },
    async createLink(path, settings) {
      const { mount, path: inner } = mounts.place(path);
      return mount.files.createLink(inner, settings);
    },
    async changeLink(path, url, change) {
      const { mount, path: inner } = mounts.place(path);
      return mount.files.changeLink(inner, url, change);
    },
    async revokeLink(path, url) {
      const { mount, path: inner } = mounts.place(path);
      return mount.files.revokeLink(inner, url);
    },
    async thumbnail(path, rev, signal) {
      const { mount, path: inner } = mounts.place(path);
      return mount.files.thumbnail(inner, rev, signal);
    },
    async search(query, cursor, signal) {
      return searchAll(mounts.all, query, cursor, signal);
    },
  };
}

function shownLinks(mount: MountedRoot, links: readonly LinkedEntry[]): readonly LinkedEntry[] {
  return links.flatMap((link) => {
    const path = mount.outer(link.path);
    return path === undefined ? [] : [{ ...link, path }];
  });
}

/** Searches one drive after the other. The cursor is the drive's number, and its own cursor. */
async function searchAll(
  mounts: readonly MountedRoot[],
  query: string,
  cursor: string | undefined,
  signal: AbortSignal | undefined,
): ReturnType<NameSearch['search']> {
  const [, number = '0', own = ''] = /^(\d+) (.*)$/s.exec(cursor ?? '') ?? [];
  let next: string | undefined = own;
  for (let index = Number(number); index < mounts.length; index++) {
    const mount = mounts[index];
    if (!mount) break;
    while (next !== undefined) {
      const page = await mount.files.search(query, next || undefined, signal);
      const entries = page.entries
        .filter(({ path }) => mount.outer(path) !== undefined)
        .map((entry) => mount.shown(entry))
        // The name of a root is not the user's to see.
        .filter(({ path }) => path !== mount.at);
      next = page.cursor;
      const following =
        next !== undefined ? `${index} ${next}` : index + 1 < mounts.length ? `${index + 1} ` : undefined;
      // A page without any name would look like the end.
      if (entries.length > 0 || following === undefined)
        return { entries, ...(following !== undefined && { cursor: following }) };
    }
    next = '';
  }
  return { entries: [] };
}

/** The listing of the folder above all drives. */
class TopListing {
  #last: Listing | undefined;

  constructor(private readonly mounts: Mounts) {}

  places(): readonly Place[] {
    return this.mounts.all.map((mount) => ({ mount, path: mount.inner(mount.at) }));
  }

  /** Returns the drives, also those whose service does not answer; the same object as long as nothing has changed. */
  async current(signal: AbortSignal | undefined): Promise<Listing> {
    const children = await Promise.all(this.places().map((place) => this.#entryOf(place, signal)));
    const isSame = this.#last?.children.every((child, index) => child === children[index]);
    if (!this.#last || !isSame) this.#last = { folder: this.mounts.top, children };
    return this.#last;
  }

  readonly #away = new Map<MountedRoot, FolderEntry>();

  async #entryOf({ mount, path }: Place, signal: AbortSignal | undefined): Promise<Entry> {
    try {
      await mount.ready();
      const entry = await mount.files.stat(path, signal);
      if (entry) return mount.shown(entry);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
    }
    const known = this.#away.get(mount);
    const { at } = mount;
    const away = known ?? { kind: 'folder', id: mount.idOf(''), path: at, name: namesOf(at)[0] ?? '' };
    this.#away.set(mount, away);
    return away;
  }
}
