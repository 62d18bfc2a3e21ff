import { LocalFileTooLarge } from '../../state/local-files.ts';
import type { Path } from '../../util/path.ts';
import { FileError, fileErrorOf } from '../errors.ts';
import type { Entry, Files, Listing } from '../files.ts';
import { replaceLink, revokeLink } from '../shared-links.ts';
import type { IntentLog } from './intent-log.ts';
import type { Mover } from './mover.ts';
import type { TreeParts } from './parts.ts';
import type { Reader } from './reader.ts';
import type { Recovery } from './recovery.ts';
import type { Remover } from './remover.ts';
import type { Writer } from './writer.ts';

export interface Operations {
  readonly parts: TreeParts;
  readonly reading: Reader;
  readonly writing: Writer;
  readonly removal: Remover;
  readonly relocating: Mover;
  readonly repairs: Recovery;
  readonly intentLog: IntentLog;
}

export interface Tree extends Files {
  /** Resolves when no change is under way any more. */
  idle(): Promise<void>;
}

/** The drive as `Files`: each operation in its own room, and here what the service said becomes a `FileError`. */
export function createTree(operations: Operations): Tree {
  const { parts, reading, writing, removal, relocating, repairs, intentLog } = operations;
  const { remote, localFiles, placeholders, space } = parts;
  /** To be awaited before `path` is looked at or changed: what a kill left half done there is done first. */
  const putRight = async (path: Path, what: 'entry' | 'folder' | 'tree'): Promise<void> => {
    await repairs.putRight(path, what);
    await intentLog.settled(path);
  };

  const underWay = new Set<Promise<unknown>>();

  const change = <T>(path: Path, work: () => Promise<T>): Promise<T> => {
    const done = named(path, async () => {
      await putRight(path, 'tree');
      return work();
    });
    underWay.add(done);
    const land = () => underWay.delete(done);
    done.then(land, land);
    return done;
  };

  const relocate = <T>(from: Path, to: Path, work: () => Promise<T>): Promise<T> =>
    change(from, async () => {
      await putRight(to, 'tree');
      return work();
    });

  async function* walk(...[path, ...how]: Parameters<Files['walk']>): AsyncIterable<Listing> {
    await putRight(path, 'tree');
    yield* reading.walk(path, ...how);
  }

  /** What is not at the service has no link. */
  const isOnlyHere = async (path: Path) =>
    localFiles.owns(path) || (await placeholders.get(path)) !== undefined;

  /** What can have a link: it has to be at the service. */
  const shareable = async (path: Path): Promise<Entry> => {
    if (localFiles.owns(path))
      throw new FileError('unsupported', `${path} is kept on this machine and cannot be shared`);
    await placeholders.commit(path);
    const entry = await reading.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    return entry;
  };

  return {
    stat: (path, signal) =>
      named(path, async () => {
        await putRight(path, 'entry');
        return reading.stat(path, signal);
      }),
    statForWrite: (path, options, signal) =>
      named(path, async () => {
        await putRight(path, 'entry');
        return reading.statForWrite(path, options, signal);
      }),
    list: (path, ...how) =>
      named(path, async () => {
        await putRight(path, 'folder');
        return reading.list(path, ...how);
      }),
    walk: (path, ...how) => namedAll(path, walk(path, ...how)),
    read: (file, range, signal) => namedAll(file.path, reading.read(file, range, signal)),
    write: (path, body, options, signal) => change(path, () => writing.write(path, body, options, signal)),
    keepPlaceholder: (path, placeholderMs) => change(path, () => writing.keep(path, placeholderMs)),
    commitPlaceholder: (path) => change(path, () => placeholders.commit(path)),
    createFolder: (path) => change(path, () => writing.createFolder(path)),
    remove: (path, options) => change(path, () => removal.remove(path, options)),
    copy: (from, to, options) => relocate(from, to, () => relocating.copy(from, to, options)),
    move: (from, to, options) => relocate(from, to, () => relocating.move(from, to, options)),
    setModified: (path, modifiedMs) => change(path, () => writing.setModified(path, modifiedMs)),
    freeSpace: (signal) => space.free(signal),
    sharedLink: (path, signal) =>
      named(path, async () => ((await isOnlyHere(path)) ? undefined : remote.sharedLink(path, signal))),
    shareLink: (path, settings) =>
      change(path, async () => replaceLink(remote, (await shareable(path)).path, settings)),
    unshareLink: (path) =>
      change(path, async () => ((await isOnlyHere(path)) ? undefined : revokeLink(remote, path))),
    async idle() {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

async function named<T>(path: Path, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translated(error, path);
  }
}

async function* namedAll<T>(path: Path, items: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* items;
  } catch (error) {
    throw translated(error, path);
  }
}

function translated(error: unknown, path: Path): unknown {
  if (error instanceof LocalFileTooLarge) return new FileError('too-large', error.message, { cause: error });
  return fileErrorOf(error, path);
}
