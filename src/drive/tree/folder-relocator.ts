import type { Remote } from '../../api/remote.ts';
import type { Replacements } from '../../state/replacements.ts';
import { join, type Path, parentOf, relocate } from '../../util/path.ts';
import { succeeds } from '../../util/succeeds.ts';
import type { Entry, FolderEntry } from '../files.ts';
import type { Gateways } from '../gateways.ts';
import { waitingName } from '../names.ts';
import type { OtherReplacement, OtherReplacements } from './other-replacements.ts';
import type { Recovery } from './recovery.ts';

interface FolderRelocatorDeps {
  readonly others: OtherReplacements;
  readonly replacements: Replacements;
  readonly recovery: Recovery;
  readonly gateways: Pick<Gateways, 'newId'>;
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
    { mayDiscard }: { readonly mayDiscard: boolean },
  ): Promise<Entry> {
    const { done, met } = await this.deps.others.during(from, call);
    for (const { id, path } of met) await this.#recoverAt(relocate(path, from, to), id, mayDiscard);
    return done;
  }

  /** A failure to note it fails nothing: this process recovers it nevertheless. */
  async #recoverAt(path: Path, id: OtherReplacement['id'], mayDiscard: boolean): Promise<void> {
    const { replacements, recovery, gateways } = this.deps;
    const waitingAt = join(parentOf(path), waitingName(id));
    const replacement = { id: gateways.newId(), path, waitingAt, purpose: 'replace' } as const;
    await succeeds(replacements.note(replacement));
    recovery.add({ replacement, isMissing: true, isPlaced: () => mayDiscard });
  }
}
