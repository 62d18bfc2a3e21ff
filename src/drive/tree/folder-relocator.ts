import type { Remote } from '../../api/remote.ts';
import { join, nameOf, type Path, parentOf, relocate } from '../../util/path.ts';
import type { Entry, FolderEntry } from '../files.ts';
import { waitingName } from '../names.ts';
import type { OtherReplacements } from './other-replacements.ts';
import type { Recovery } from './recovery.ts';

interface FolderRelocatorDeps {
  readonly others: OtherReplacements;
  readonly recovery: Recovery;
}

/**
 * Moves and copies folders. What another gateway replaces in them at that moment comes along under its hidden name, with
 * or without the new entry; recovery then settles it at the new place.
 */
export class FolderRelocator {
  constructor(private readonly deps: FolderRelocatorDeps) {}

  move(remote: Remote, folder: FolderEntry, to: Path): Promise<Entry> {
    const call = () => remote.move(folder.path, to, undefined, folder.id);
    // What came along is no copy: it must not be lost, whatever has its name.
    return this.#relocate(folder.path, to, call, { mayDiscard: false });
  }

  copy(remote: Remote, folder: FolderEntry, to: Path): Promise<Entry> {
    return this.#relocate(folder.path, to, () => remote.copy(folder.path, to), { mayDiscard: true });
  }

  async #relocate(
    from: Path,
    to: Path,
    call: () => Promise<Entry>,
    how: { readonly mayDiscard: boolean },
  ): Promise<Entry> {
    const { others, recovery } = this.deps;
    const { done, met } = await others.during(from, call);
    for (const { id, path } of met) {
      const place = relocate(path, from, to);
      const waitingAt = join(parentOf(place), waitingName(id, nameOf(path)));
      await recovery.adopt({ path: place, waitingAt }, how);
    }
    return done;
  }
}
