import type { Kept } from '../../state/intents.ts';
import type { DriveState } from '../../state/state.ts';
import { type Path, relocate } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import type { Entry } from '../files.ts';
import type { ModifiedTimes } from '../modified-times.ts';
import type { Reader } from './tree.ts';

/** Maximum size of one intent of a large tree. */
const PIECE = { entries: 1_000, propertiesBytes: 1024 * 1024 };

interface KeptStateDeps {
  readonly state: Pick<DriveState, 'properties' | 'times'>;
  readonly times: ModifiedTimes;
  readonly metadata: MetadataCache;
  readonly reader: Reader;
}

/** Copies dead properties and set times, which davgate keeps by file id: a copy has new ids. */
export class KeptState {
  constructor(private readonly deps: KeptStateDeps) {}

  /** Yields what is kept for `source` and everything below it, for the copy at `to`. Most copies have nothing. */
  async *of(source: Entry, to: Path, isShallow: boolean): AsyncIterable<readonly Kept[]> {
    const { state } = this.deps;
    const [noProperties, noTimes] = await Promise.all([state.properties.isEmpty(), state.times.isEmpty()]);
    // Saves listing everything below the source, which may cost calls.
    if (noProperties && noTimes) return;
    let piece: Kept[] = [];
    let bytes = 0;
    for await (const originals of this.#originals(source, isShallow))
      for (const kept of await this.#keptFor(originals, source.path, to)) {
        piece.push(kept);
        for (const { xml } of kept.properties) bytes += Buffer.byteLength(xml);
        if (piece.length < PIECE.entries && bytes < PIECE.propertiesBytes) continue;
        yield piece;
        piece = [];
        bytes = 0;
      }
    if (piece.length > 0) yield piece;
  }

  /**
   * Gives the copies what was kept for their originals. What a copy has received since stays, so a repetition does no
   * harm. Returns whether all copies were there.
   */
  async give(kept: readonly Kept[]): Promise<boolean> {
    const { metadata, state, times } = this.deps;
    const copies: [Kept, Entry][] = [];
    for (const one of kept) {
      const copy = await metadata.stat(one.path);
      if (copy?.kind === one.kind) copies.push([one, copy]);
    }
    const ids = copies.map(([, { id }]) => id);
    const [ownProperties, ownTimes] = await Promise.all([state.properties.of(ids), state.times.of(ids)]);
    await Promise.all(
      copies.map(async ([{ properties, modifiedMs, contentHash }, copy]) => {
        if (properties.length > 0 && !ownProperties.has(copy.id))
          await state.properties.change(
            copy.id,
            properties.map((set) => ({ set })),
          );
        if (modifiedMs !== undefined && !ownTimes.has(copy.id) && contentHashOf(copy) === contentHash)
          await metadata.setTime(await times.set(copy, modifiedMs));
      }),
    );
    return copies.length === kept.length;
  }

  async *#originals(source: Entry, isShallow: boolean): AsyncIterable<readonly Entry[]> {
    yield [source];
    if (source.kind === 'folder' && !isShallow)
      for await (const { children } of this.deps.reader.walk(source.path)) yield children;
  }

  async #keptFor(originals: readonly Entry[], from: Path, to: Path): Promise<Kept[]> {
    const [properties, times] = await Promise.all([
      this.deps.state.properties.of(originals.map(({ id }) => id)),
      this.deps.times.of(originals),
    ]);
    return originals.flatMap((original) => {
      const [own, modifiedMs] = [properties.get(original.id) ?? [], times.get(original.id)];
      if (own.length === 0 && modifiedMs === undefined) return [];
      const contentHash = contentHashOf(original);
      return {
        path: relocate(original.path, from, to),
        kind: original.kind,
        properties: own,
        ...(contentHash !== undefined && { contentHash }),
        ...(modifiedMs !== undefined && { modifiedMs }),
      };
    });
  }
}

function contentHashOf(entry: Entry): string | undefined {
  return entry.kind === 'file' ? entry.contentHash : undefined;
}
