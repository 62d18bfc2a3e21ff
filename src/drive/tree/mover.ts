import { isApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import type { Log } from '../../util/log.ts';
import { isWithin, join, keyOf, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { placedIn } from '../cache/tree-cache.ts';
import { FileError } from '../errors.ts';
import type { Entry, RelocateOptions, Written } from '../files.ts';
import type { ModifiedTimes } from '../modified-times.ts';
import { isWithinWaiting } from '../names.ts';
import type { PathLocks } from '../path-locks.ts';
import type { Placeholders } from '../placeholders.ts';
import type { FolderRelocator } from './folder-relocator.ts';
import type { IntentLog } from './intent-log.ts';
import { type LocalMover, requireRevision } from './local-mover.ts';
import type { Relocation, RelocationIntents } from './relocation-intents.ts';
import type { Remover } from './remover.ts';
import type { Placement, Replacer } from './replacer.ts';
import type { Reader } from './tree.ts';

/** Maximum number of attempts when another client puts something at the target meanwhile. */
const ATTEMPTS_MAX = 3;

/** A move or copy: what goes where, and the call of the service that does it. */
interface Plan extends Relocation {
  readonly options: RelocateOptions;
  readonly placement: Placement;
}

interface MoverDeps {
  readonly remote: Remote;
  readonly metadata: MetadataCache;
  readonly placeholders: Placeholders;
  readonly times: ModifiedTimes;
  readonly locks: PathLocks;
  readonly reader: Reader;
  readonly remover: Remover;
  readonly replacer: Replacer;
  readonly folderRelocator: FolderRelocator;
  readonly intentLog: IntentLog;
  readonly intents: RelocationIntents;
  readonly localMover: LocalMover;
  readonly log: Log;
}

/** Moves and copies files and folders, also onto existing ones. */
export class Mover {
  constructor(private readonly deps: MoverDeps) {}

  async move(from: Path, to: Path, options: RelocateOptions): Promise<Written> {
    const { localMover } = this.deps;
    refuseNonsense(from, to);
    if (localMover.concerns(from, to)) return localMover.relocate('move', from, to, options);
    const source = await this.#sourceAt(from);
    if (keyOf(from) === keyOf(to)) return this.#renameCase(source, to, options);
    const place = join((await this.deps.reader.parentOf(to)).path, nameOf(to));
    return this.#carryOut({
      kind: 'move',
      source,
      to: place,
      options,
      isNew: false,
      placement: {
        id: source.id,
        place: (remote) =>
          source.kind === 'folder'
            ? this.deps.folderRelocator.move(remote, source, place)
            : remote.move(source.path, place, undefined, source.id),
        isPlaced: (found) => found.id === source.id,
      },
    });
  }

  async copy(
    from: Path,
    to: Path,
    { shallow, ...options }: RelocateOptions & { readonly shallow: boolean },
  ): Promise<Written> {
    const { localMover } = this.deps;
    refuseNonsense(from, to);
    if (keyOf(from) === keyOf(to)) throw new FileError('into-itself', `${from} cannot be copied onto itself`);
    if (localMover.concerns(from, to)) return localMover.relocate('copy', from, to, { shallow, ...options });
    const source = await this.#sourceAt(from);
    const place = join((await this.deps.reader.parentOf(to)).path, nameOf(to));
    const isNew = shallow && source.kind === 'folder';
    const call = (remote: Remote) => {
      if (source.kind === 'file') return remote.copy(source.path, place);
      return shallow ? remote.createFolder(place) : this.deps.folderRelocator.copy(remote, source, place);
    };
    return this.#carryOut({
      kind: 'copy',
      source,
      to: place,
      options,
      isNew,
      placement: {
        place: call,
        isPlaced: (found) => isCopyOf(found, source),
      },
    });
  }

  /** Returns the entry at `from`. Commits placeholders there first, since the service can only move what it has. */
  async #sourceAt(from: Path): Promise<Entry> {
    const { placeholders, metadata } = this.deps;
    await placeholders.commitWithin(from);
    const source = isWithinWaiting(from) ? undefined : await metadata.stat(from);
    if (!source && (await placeholders.get(from)))
      throw new FileError('busy', `${from} is being written; try again`);
    if (!source) throw new FileError('not-found', `${from} is not there`);
    return source;
  }

  async #renameCase(source: Entry, to: Path, options: RelocateOptions): Promise<Written> {
    if (source.name === nameOf(to)) return { entry: source, created: false };
    return this.deps.locks.exclusive([source.path], async () => {
      await this.#requireRevisions(source.path, source.path, options);
      return this.#renameCaseInTurn(source, to);
    });
  }

  async #renameCaseInTurn(source: Entry, to: Path): Promise<Written> {
    const { metadata } = this.deps;
    const folder = parentOf(source.path);
    const change = metadata.begin([source.path], { tree: source.kind === 'folder', shield: true });
    let entry: Entry | undefined;
    try {
      entry = placedIn(folder, await this.deps.replacer.renameCase(source, join(folder, nameOf(to))));
      entry = (await this.deps.times.applyTo([entry]))[0] ?? entry;
      return { entry, created: false };
    } finally {
      await change.end(entry ? [[source.path, entry]] : []);
    }
  }

  #carryOut(plan: Plan): Promise<Written> {
    const { placeholders, locks } = this.deps;
    const { kind, source, to, options } = plan;
    const isSourcePinned = kind === 'move' || options.rev !== undefined;
    const paths = isSourcePinned ? [source.path, to] : [to];
    // A placeholder that is committed in the middle of this would come to the old place, or be replaced unseen.
    return placeholders.withCommitsPaused(
      paths,
      () => locks.exclusive(paths, () => this.#performNoted(plan)),
      { isShort: true },
    );
  }

  /** A copy whose properties cannot be stored now fails, although it exists: they follow. A move succeeds all the same. */
  async #performNoted(plan: Plan): Promise<Written> {
    const work = () => this.#attempt(plan);
    const { intentLog, intents } = this.deps;
    const { written, failure } = await intentLog.perform(plan.to, intents.of(plan), work);
    if (failure !== undefined && plan.kind === 'copy') throw failure;
    const [shown = written.entry] = await this.deps.times.applyTo([written.entry]);
    return { ...written, entry: shown };
  }

  async #attempt(plan: Plan): Promise<Written> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#carryOutOnto(plan);
      } catch (error) {
        // The target has an entry that the cache did not have. Now the cache has it.
        const isConflict = isApiFailure(error, 'conflict-file', 'conflict-folder');
        if (!isConflict || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  async #carryOutOnto(plan: Plan): Promise<Written> {
    const { metadata, placeholders } = this.deps;
    const { kind, source, to, options } = plan;
    // The folder may have disappeared, and the files may have changed, while this waited for its lock.
    await this.deps.reader.parentOf(to);
    await this.#requireRevisions(source.path, to, options);
    const target = await metadata.stat(to);
    const isCreated = !target && !(await placeholders.get(to));
    if (!isCreated && !options.overwrite) throw new FileError('exists', `something is at ${to} already`);
    const replacedIds = target ? this.deps.remover.idsWithin(target) : [];
    const isTree = source.kind === 'folder' || target?.kind === 'folder';
    const change = metadata.begin(kind === 'move' ? [source.path, to] : [to], { tree: isTree, shield: true });
    let entry: Entry | undefined;
    try {
      const made = target
        ? await this.deps.replacer.replace(target, source.path, plan.placement)
        : await plan.placement.place(this.deps.remote);
      entry = placedIn(parentOf(to), made);
      entry = await this.#afterwards(plan, entry, replacedIds);
    } finally {
      await change.end(
        entry
          ? [
              [source.path, 'absent'],
              [to, entry],
            ]
          : [],
        plan,
      );
    }
    return { entry, created: isCreated };
  }

  /**
   * Forgets the state of the old target, and returns `placed` as clients see it. The service has done its part, so a
   * failure goes to the log: after an error the client would believe that nothing was moved.
   */
  async #afterwards(plan: Plan, placed: Entry, replacedIds: readonly string[]): Promise<Entry> {
    const { placeholders, times, log } = this.deps;
    const { kind, source, to } = plan;
    try {
      await this.deps.remover.forgetKept(to, replacedIds);
      if (kind === 'move') await placeholders.move(source.path, to);
      return (await times.applyTo([placed]))[0] ?? placed;
    } catch (error) {
      log.error('a move or copy is done, but properties and times of the old target are not removed yet', {
        from: source.path,
        to,
        reason: String(error),
      });
      return placed;
    }
  }

  /**
   * Throws `changed` unless the files have the revisions that `options` names. The service takes no condition with a
   * move or copy, so it is asked first; only another program of the account can still interfere.
   */
  async #requireRevisions(from: Path, to: Path, { rev, targetRev }: RelocateOptions): Promise<void> {
    const wanted = [[from, rev] as const, [to, targetRev] as const];
    await Promise.all(
      wanted.map(async ([path, expected]) => {
        if (expected === undefined) return;
        const entry = await this.deps.remote.stat(path);
        requireRevision(path, entry, expected);
      }),
    );
  }
}

function refuseNonsense(from: Path, to: Path): void {
  if (from === ROOT) throw new FileError('forbidden', 'the root of the drive cannot be moved or copied');
  const isSame = keyOf(from) === keyOf(to);
  if (from === to || (!isSame && (isWithin(to, from) || isWithin(from, to))))
    throw new FileError('into-itself', `${from} cannot go to ${to}: one of them lies in the other`);
  if (isWithinWaiting(to)) throw new FileError('bad-name', `davgate keeps the name ${nameOf(to)} for itself`);
}

function isCopyOf(found: Entry, source: Entry): boolean {
  if (found.kind !== source.kind || found.id === source.id) return false;
  return found.kind === 'folder' || source.kind === 'folder' || found.contentHash === source.contentHash;
}
