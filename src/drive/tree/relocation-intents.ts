import type { Intent, Kept } from '../../state/intents.ts';
import type { Path } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import type { Entry } from '../files.ts';
import type { Gateways } from '../gateways.ts';
import type { LocalFiles } from '../local-files.ts';
import { companionOf } from '../names.ts';
import type { KeptState } from './kept-state.ts';

/** A move or copy: what goes where. */
export interface Relocation {
  readonly kind: 'move' | 'copy';
  readonly source: Entry;
  /** In display case. */
  readonly to: Path;
  /** Whether the outcome is an empty folder. */
  readonly isNew: boolean;
}

interface RelocationIntentsDeps {
  readonly localFiles: LocalFiles;
  readonly metadata: MetadataCache;
  readonly keptState: KeptState;
  readonly gateways: Pick<Gateways, 'newId'>;
}

/** Finds what has to follow a move or copy: local files, and for a copy also properties and set times. */
export class RelocationIntents {
  constructor(private readonly deps: RelocationIntentsDeps) {}

  /** Yields the intents that have to be noted before the move or copy. */
  async *of({ kind, source, to, isNew }: Relocation): AsyncIterable<Intent> {
    const isCopy = kind === 'copy';
    const target = await this.deps.metadata.stat(to);
    const contentHash = source.kind === 'file' ? source.contentHash : undefined;
    const outcome = {
      kind: source.kind,
      otherIds: [source.id, ...(target ? [target.id] : [])],
      ...(!isCopy && { id: source.id }),
      ...(contentHash !== undefined && { contentHash }),
    };
    const intentFor = (kept: readonly Kept[], takesLocalFiles: boolean): Intent => ({
      ...{ id: this.deps.gateways.newId(), kind, from: source.path, to, outcome, takesLocalFiles, kept },
    });
    if (!isNew && (await this.#hasLocalFiles(kind, source.path))) yield intentFor([], true);
    if (isCopy)
      for await (const kept of this.deps.keptState.of(source, to, isNew)) yield intentFor(kept, false);
  }

  /** Returns whether local files have to follow. Throws `too-many` when they are too many for that. */
  async #hasLocalFiles(kind: Relocation['kind'], path: Path): Promise<boolean> {
    const { localFiles } = this.deps;
    const places = kind === 'move' ? [path, companionOf(path)] : [path];
    return (await Promise.all(places.map((place) => localFiles.hasMovable(place)))).includes(true);
  }
}
