import type { Remote } from '../api/remote.ts';
import { ASIDE_BYTES_MAX } from '../state/asides.ts';
import { isWithin, join, keyOf, nameOf, type Path, parentOf, ROOT, relocate } from '../util/path.ts';
import { FileError, isApiFailure } from './errors.ts';
import type { Entry, FileEntry, Written } from './files.ts';
import { placedIn } from './metadata/known-tree.ts';
import { appleDoubleName, isWithinWaiting } from './names.ts';
import { parentFolder, type TreeParts } from './parts.ts';
import type { Reading } from './reading.ts';
import type { Removal } from './removal.ts';
import type { StepAside } from './step-aside.ts';
import type { Writing } from './writing.ts';

/** What is tried again when something came to the target meanwhile. */
const ATTEMPTS_MAX = 3;

/** A move or copy: what goes where, and the call of the service that does it. */
interface Plan {
  readonly kind: 'move' | 'copy';
  readonly source: Entry;
  /** In display case. */
  readonly to: Path;
  readonly overwrite: boolean;
  /** What is made is an empty folder. */
  readonly isNew: boolean;
  readonly place: (remote: Remote) => Promise<Entry>;
  /** Whether `found`, at `to`, is what `place` makes. */
  readonly isPlaced: (found: Entry) => boolean;
}

/** Moves and copies, onto what is there if need be. */
export class Relocating {
  constructor(
    private readonly parts: TreeParts,
    private readonly reading: Reading,
    private readonly writing: Writing,
    private readonly removal: Removal,
    private readonly stepAside: StepAside,
  ) {}

  async move(from: Path, to: Path, { overwrite }: { readonly overwrite: boolean }): Promise<Written> {
    const { asides } = this.parts;
    refuseNonsense(from, to);
    if (asides.keeps(from) || asides.keeps(to)) return this.#relocateAside('move', from, to, overwrite);
    const source = await this.#sourceAt(from);
    if (keyOf(from) === keyOf(to)) return this.#renameCase(source, to);
    const place = join((await parentFolder(this.parts, to)).path, nameOf(to));
    const written = await this.#carryOut({
      kind: 'move',
      source,
      to: place,
      overwrite,
      isNew: false,
      place: (remote) => remote.move(source.path, place, undefined, source.id),
      isPlaced: (found) => found.id === source.id,
    });
    await Promise.all([
      asides.move(source.path, place),
      asides.move(companion(source.path), companion(place)),
    ]);
    return written;
  }

  async copy(
    from: Path,
    to: Path,
    { overwrite, shallow }: { readonly overwrite: boolean; readonly shallow: boolean },
  ): Promise<Written> {
    const { asides } = this.parts;
    refuseNonsense(from, to);
    if (keyOf(from) === keyOf(to)) throw new FileError('into-itself', `${from} cannot be copied onto itself`);
    if (asides.keeps(from) || asides.keeps(to)) return this.#relocateAside('copy', from, to, overwrite);
    const source = await this.#sourceAt(from);
    const place = join((await parentFolder(this.parts, to)).path, nameOf(to));
    const isNew = shallow && source.kind === 'folder';
    const written = await this.#carryOut({
      kind: 'copy',
      source,
      to: place,
      overwrite,
      isNew,
      place: (remote) => (isNew ? remote.createFolder(place) : remote.copy(source.path, place)),
      isPlaced: (found) => isCopyOf(found, source),
    });
    if (!isNew) await asides.copy(source.path, place);
    return { ...written, entry: await this.#copyKept(source, written.entry, isNew) };
  }

  /** What is at `from`, with all that was held back there committed: held files do not travel. */
  async #sourceAt(from: Path): Promise<Entry> {
    const { held, metadata } = this.parts;
    await held.settleWithin(from);
    const source = isWithinWaiting(from) ? undefined : await metadata.stat(from);
    if (!source && (await held.get(from))) throw new FileError('busy', `${from} is being written; try again`);
    if (!source) throw new FileError('not-found', `${from} is not there`);
    return source;
  }

  async #renameCase(source: Entry, to: Path): Promise<Written> {
    const { metadata } = this.parts;
    const folder = parentOf(source.path);
    if (source.name === nameOf(to)) return { entry: source, created: false };
    const change = metadata.begin([source.path], { tree: source.kind === 'folder', shield: true });
    let entry: Entry | undefined;
    try {
      entry = placedIn(folder, await this.stepAside.renameCase(source, join(folder, nameOf(to))));
      entry = (await this.parts.times.on([entry]))[0] ?? entry;
      return { entry, created: false };
    } finally {
      change.end(entry ? [[source.path, entry]] : []);
    }
  }

  async #carryOut(plan: Plan): Promise<Written> {
    for (let attempt = 1; ; attempt++) {
      const target = await this.reading.stat(plan.to);
      if (target && !plan.overwrite) throw new FileError('exists', `something is at ${plan.to} already`);
      try {
        // What is held at the target is not to be committed into the middle of this.
        return await this.parts.held.keepBack(plan.to, () => this.#carryOutOnto(plan));
      } catch (error) {
        // Something that we did not know of is in the way; by now it is known.
        const isInTheWay = isApiFailure(error, 'conflict-file', 'conflict-folder');
        if (!isInTheWay || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  async #carryOutOnto(plan: Plan): Promise<Written> {
    const { metadata, held } = this.parts;
    const { kind, source, to } = plan;
    const target = await metadata.stat(to);
    const isCreated = !target && !(await held.get(to));
    const replacedIds = target ? this.removal.idsWithin(target) : [];
    const isTree = source.kind === 'folder' || target?.kind === 'folder';
    const change = metadata.begin(kind === 'move' ? [source.path, to] : [to], { tree: isTree, shield: true });
    let entry: Entry | undefined;
    try {
      const made = target
        ? await this.stepAside.replace(target, source.path, plan.place, plan.isPlaced)
        : await plan.place(this.parts.remote);
      entry = placedIn(parentOf(to), made);
      entry = (await this.parts.times.on([entry]))[0] ?? entry;
      await this.removal.forgetKept(to, replacedIds);
    } finally {
      change.end(
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

  /** Gives the copy, and all below it, what we keep by id: dead properties and times that were set. */
  async #copyKept(source: Entry, copy: Entry, isShallow: boolean): Promise<Entry> {
    const { metadata, times, state } = this.parts;
    const [noProperties, noTimes] = await Promise.all([state.properties.isEmpty(), state.times.isEmpty()]);
    // Else all below the source is listed, which may cost calls.
    if (noProperties && noTimes) return copy;
    const kept = await this.#withKept([source]);
    if (source.kind === 'folder' && !isShallow) kept.push(...(await this.#keptBelow(source.path)));
    for (const original of kept) {
      const isTop = original.path === source.path;
      const its = isTop ? copy : await metadata.stat(relocate(original.path, source.path, copy.path));
      // What has gone meanwhile, or came only after the copy, has nothing to be given.
      if (!its || its.kind !== original.kind) continue;
      await state.properties.copy(original.id, its.id);
      const shown = await times.copy(original, its);
      if (shown !== its) metadata.adorn(shown);
    }
    return (await times.on([copy]))[0] ?? copy;
  }

  async #keptBelow(folder: Path): Promise<Entry[]> {
    const kept: Entry[] = [];
    for await (const { children } of this.reading.walk(folder))
      kept.push(...(await this.#withKept(children)));
    return kept;
  }

  async #withKept(entries: readonly Entry[]): Promise<Entry[]> {
    const ids = entries.map(({ id }) => id);
    const [properties, times] = await Promise.all([
      this.parts.state.properties.of(ids),
      this.parts.state.times.of(ids),
    ]);
    return entries.filter(({ id }) => properties.has(id) || times.has(id));
  }

  /** At least one of the two places is not at the service. */
  async #relocateAside(kind: Plan['kind'], from: Path, to: Path, overwrite: boolean): Promise<Written> {
    const { asides, state } = this.parts;
    if (keyOf(from) === keyOf(to) && from === to) throw new FileError('into-itself', `${from} is ${to}`);
    const source = await this.reading.stat(from);
    if (!source) throw new FileError('not-found', `${from} is not there`);
    const place = join((await parentFolder(this.parts, to)).path, nameOf(to));
    const target = keyOf(from) === keyOf(to) ? undefined : await this.reading.stat(place);
    if (target && !overwrite) throw new FileError('exists', `something is at ${to} already`);
    if (asides.keeps(from) && asides.keeps(to)) {
      await (kind === 'move' ? asides.move(source.path, place) : asides.copy(source.path, place));
      const entry = await asides.stat(place);
      if (!entry) throw new FileError('not-found', `${from} has gone meanwhile`);
      if (kind === 'copy') await state.properties.copy(source.id, entry.id);
      return { entry, created: target === undefined };
    }
    const written = await this.#carryAcross(source, place, overwrite);
    await state.properties.copy(source.id, written.entry.id);
    if (kind === 'move') await this.removal.remove(from, { recoverable: true });
    return written;
  }

  async #carryAcross(source: Entry, to: Path, overwrite: boolean): Promise<Written> {
    if (source.kind === 'folder')
      throw new FileError(
        'forbidden',
        `${source.path} is a folder; only files can get or lose a name like this`,
      );
    if (this.parts.asides.keeps(to) && source.sizeBytes > ASIDE_BYTES_MAX)
      throw new FileError('too-large', `${to} is kept aside, and may have at most ${ASIDE_BYTES_MAX} bytes`);
    const body = this.reading.read(source, undefined, new AbortController().signal);
    const { sizeBytes, modifiedMs } = source satisfies FileEntry;
    const mode = overwrite ? ({ if: 'any' } as const) : ({ if: 'absent' } as const);
    return this.writing.write(to, body, { mode, sizeBytes, modifiedMs });
  }
}

function refuseNonsense(from: Path, to: Path): void {
  if (from === ROOT) throw new FileError('forbidden', 'the root of the drive cannot be moved or copied');
  const isSame = keyOf(from) === keyOf(to);
  if (from === to || (!isSame && (isWithin(to, from) || isWithin(from, to))))
    throw new FileError('into-itself', `${from} cannot go to ${to}: one of them lies in the other`);
  if (isWithinWaiting(to)) throw new FileError('bad-name', `davgate keeps the name ${nameOf(to)} for itself`);
}

function companion(path: Path): Path {
  return join(parentOf(path), appleDoubleName(nameOf(path)));
}

function isCopyOf(found: Entry, source: Entry): boolean {
  if (found.kind !== source.kind || found.id === source.id) return false;
  return found.kind === 'folder' || source.kind === 'folder' || found.contentHash === source.contentHash;
}
