import type { Remote } from '../../api/remote.ts';
import { LocalFileTooLarge } from '../../state/local-files.ts';
import type { Path } from '../../util/path.ts';
import { FileError, fileErrorOf } from '../errors.ts';
import type { Entry, Files, Listing } from '../files.ts';
import type { LocalFiles } from '../local-files.ts';
import type { Placeholders } from '../placeholders.ts';
import type { QuotaCache } from '../quota-cache.ts';
import { replaceLink, revokeLink } from '../shared-links.ts';
import type { IntentLog } from './intent-log.ts';
import type { Mover } from './mover.ts';
import type { Reader } from './reader.ts';
import type { Recovery } from './recovery.ts';
import type { Remover } from './remover.ts';
import type { Writer } from './writer.ts';

interface TreeDeps {
  readonly reader: Reader;
  readonly writer: Writer;
  readonly remover: Remover;
  readonly mover: Mover;
  readonly recovery: Recovery;
  readonly intentLog: IntentLog;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly quota: QuotaCache;
  readonly remote: Pick<Remote, 'sharedLink' | 'createSharedLink' | 'revokeSharedLink'>;
}

export interface Tree extends Files {
  /** Resolves when no change is running. */
  idle(): Promise<void>;
}

/** Joins the operations to `Files`. Recovers what concerns a path first, and turns failures of the service into `FileError`s. */
export function createTree(deps: TreeDeps): Tree {
  const { reader, writer, remover, mover, recovery, intentLog, localFiles, placeholders, quota, remote } =
    deps;
  /** Finishes what a kill or a lost answer left at `path`, before it is read or changed. */
  const recover = async (path: Path, what: 'entry' | 'folder' | 'tree'): Promise<void> => {
    if (recovery.unfinished.size > 0) await recovery.settle(path, what);
    if (intentLog.unfinished.size > 0) await intentLog.settle(path);
  };

  const underWay = new Set<Promise<unknown>>();

  const change = <T>(path: Path, work: () => Promise<T>): Promise<T> => {
    const done = named(path, async () => {
      await recover(path, 'tree');
      return work();
    });
    underWay.add(done);
    const land = () => underWay.delete(done);
    done.then(land, land);
    return done;
  };

  const changeBoth = <T>(from: Path, to: Path, work: () => Promise<T>): Promise<T> =>
    change(from, async () => {
      await recover(to, 'tree');
      return work();
    });

  async function* walk(...[path, ...how]: Parameters<Files['walk']>): AsyncIterable<Listing> {
    await recover(path, 'tree');
    yield* reader.walk(path, ...how);
  }

  /** Returns whether only this machine has the entry: it can have no link then. */
  const isOnlyHere = async (path: Path) =>
    localFiles.owns(path) || (await placeholders.get(path)) !== undefined;

  /** Returns the entry for a shared link, after committing it to the service. */
  const shareable = async (path: Path): Promise<Entry> => {
    if (localFiles.owns(path))
      throw new FileError('unsupported', `cannot share ${path}: it is kept on this machine only`);
    await placeholders.commit(path);
    const entry = await reader.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    return entry;
  };

  return {
    stat: (path, signal) =>
      named(path, async () => {
        await recover(path, 'entry');
        return reader.stat(path, signal);
      }),
    statForWrite: (path, options, signal) =>
      named(path, async () => {
        await recover(path, 'entry');
        return reader.statForWrite(path, options, signal);
      }),
    list: (path, ...how) =>
      named(path, async () => {
        await recover(path, 'folder');
        return reader.list(path, ...how);
      }),
    walk: (path, ...how) => namedAll(path, walk(path, ...how)),
    read: (file, range, signal) => namedAll(file.path, reader.read(file, range, signal)),
    write: (path, body, options, signal) => change(path, () => writer.write(path, body, options, signal)),
    keepPlaceholder: (path, placeholderMs) => change(path, () => writer.keepPlaceholder(path, placeholderMs)),
    commitPlaceholder: (path) => change(path, () => placeholders.commit(path)),
    createFolder: (path) => change(path, () => writer.createFolder(path)),
    remove: (path, options) => change(path, () => remover.remove(path, options)),
    copy: (from, to, options) => changeBoth(from, to, () => mover.copy(from, to, options)),
    move: (from, to, options) => changeBoth(from, to, () => mover.move(from, to, options)),
    setModified: (path, modifiedMs) => change(path, () => writer.setModified(path, modifiedMs)),
    freeSpace: (signal) => quota.free(signal),
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
