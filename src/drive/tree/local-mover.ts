import type { DriveState } from '../../state/state.ts';
import { join, keyOf, nameOf, type Path } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, RelocateOptions, Written } from '../files.ts';
import type { LocalFiles } from '../local-files.ts';
import type { PathLocks } from '../path-locks.ts';
import type { Remover } from './remover.ts';
import type { Reader } from './tree.ts';
import type { Writer } from './writer.ts';

interface LocalMoverDeps {
  readonly properties: DriveState['properties'];
  readonly localFiles: LocalFiles;
  readonly locks: PathLocks;
  readonly reader: Reader;
  readonly writer: Writer;
  readonly remover: Remover;
}

interface LocalOptions extends RelocateOptions {
  /** Whether a copy of a folder is an empty folder. */
  readonly shallow?: boolean;
}

/** Moves and copies files that are kept on this machine, also from there to the service and back. */
export class LocalMover {
  constructor(private readonly deps: LocalMoverDeps) {}

  /** Returns whether one of the two paths, or both, belong to local files. */
  concerns(from: Path, to: Path): boolean {
    const { localFiles } = this.deps;
    return localFiles.owns(from) || localFiles.owns(to);
  }

  /** Moves or copies a file when `concerns` holds for the two paths. */
  async relocate(kind: 'move' | 'copy', from: Path, to: Path, options: LocalOptions): Promise<Written> {
    const { localFiles, locks, properties } = this.deps;
    if (localFiles.owns(from) && localFiles.owns(to))
      return locks.exclusive([from, to], () => this.#relocateWithinLocal(kind, from, to, options));
    const { source, place } = await this.#localEnds(from, to, options);
    const written = await this.#carryAcross(source, place, options);
    await properties.copy(source.id, written.entry.id);
    // A revision written meanwhile was not copied, and must not be removed.
    const meant = source.kind === 'file' ? { rev: source.rev } : {};
    if (kind === 'move') await this.deps.remover.remove(from, { recoverable: true, ...meant });
    return written;
  }

  async #relocateWithinLocal(
    kind: 'move' | 'copy',
    from: Path,
    to: Path,
    options: LocalOptions,
  ): Promise<Written> {
    const { localFiles, properties } = this.deps;
    const { source, target, place } = await this.#localEnds(from, to, options);
    if (options.shallow && source.kind === 'folder') {
      await properties.forget(await localFiles.forget(place));
      await localFiles.createFolder(place);
    } else {
      for (const path of [source.path, place]) await localFiles.hasMovable(path);
      await (kind === 'move' ? localFiles.move(source.path, place) : localFiles.copy(source.path, place));
    }
    const entry = await localFiles.stat(place);
    if (!entry) throw new FileError('not-found', `${from} has gone meanwhile`);
    if (kind === 'copy') await properties.copy(source.id, entry.id);
    return { entry, created: target === undefined };
  }

  async #localEnds(
    from: Path,
    to: Path,
    { overwrite, rev, targetRev }: RelocateOptions,
  ): Promise<{ readonly source: Entry; readonly target: Entry | undefined; readonly place: Path }> {
    const source = await this.deps.reader.stat(from);
    if (!source) throw new FileError('not-found', `${from} is not there`);
    const place = join((await this.deps.reader.parentOf(to)).path, nameOf(to));
    const target = keyOf(from) === keyOf(to) ? undefined : await this.deps.reader.stat(place);
    if (target && !overwrite) throw new FileError('exists', `something is at ${to} already`);
    if (rev !== undefined) requireRevision(from, source, rev);
    if (targetRev !== undefined) requireRevision(to, target, targetRev);
    return { source, target, place };
  }

  async #carryAcross(source: Entry, to: Path, { overwrite, targetRev }: RelocateOptions): Promise<Written> {
    if (source.kind === 'folder')
      throw new FileError(
        'forbidden',
        `${source.path} is a folder; only files can get or lose a name like this`,
      );
    const { fileBytesMax } = this.deps.localFiles;
    if (this.deps.localFiles.owns(to) && source.sizeBytes > fileBytesMax)
      throw new FileError('too-large', `${to} is a local file and may have at most ${fileBytesMax} bytes`);
    const body = this.deps.reader.read(source, undefined, new AbortController().signal);
    const { sizeBytes, modifiedMs } = source satisfies FileEntry;
    const any = targetRev === undefined ? ({ if: 'any' } as const) : ({ if: 'rev', rev: targetRev } as const);
    const mode = overwrite ? any : ({ if: 'absent' } as const);
    return this.deps.writer.write(to, body, { mode, sizeBytes, modifiedMs });
  }
}

/** Throws `changed` unless `entry` is a file with the revision `rev`. */
export function requireRevision(path: Path, entry: Entry | undefined, rev: string): void {
  if (entry?.kind !== 'file' || entry.rev !== rev)
    throw new FileError('changed', `${path} is not what was expected`);
}
