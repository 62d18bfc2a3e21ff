import type { Kept } from '../../state/intents.ts';
import { type Path, relocate } from '../../util/path.ts';
import type { Entry } from '../files.ts';
import type { TreeParts } from './parts.ts';
import type { Reader } from './reader.ts';

/** How much of a large tree one note holds. */
const PIECE = { entries: 1_000, propertiesBytes: 1024 * 1024 };

/** Dead properties and set times, which are kept by id on this machine: a copy has new ids, and gets them from here. */
export class KeptState {
  constructor(
    private readonly parts: Pick<TreeParts, 'state' | 'times' | 'metadata'>,
    private readonly reading: Reader,
  ) {}

  /** What is kept for `source`, and for all below it, as it will be for the copy at `to`; nothing for most copies. */
  async *of(source: Entry, to: Path, isShallow: boolean): AsyncIterable<readonly Kept[]> {
    const { state } = this.parts;
    const [noProperties, noTimes] = await Promise.all([state.properties.isEmpty(), state.times.isEmpty()]);
    // Else all below the source is listed, which may cost calls.
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
   * Gives the copies what was kept for their originals. What they have got since stays, so doing it twice does no harm.
   * Returns whether all copies were there.
   */
  async give(kept: readonly Kept[]): Promise<boolean> {
    const { metadata, state, times } = this.parts;
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
          metadata.adorn(await times.set(copy, modifiedMs));
      }),
    );
    return copies.length === kept.length;
  }

  async *#originals(source: Entry, isShallow: boolean): AsyncIterable<readonly Entry[]> {
    yield [source];
    if (source.kind === 'folder' && !isShallow)
      for await (const { children } of this.reading.walk(source.path)) yield children;
  }

  async #keptFor(originals: readonly Entry[], from: Path, to: Path): Promise<Kept[]> {
    const [properties, times] = await Promise.all([
      this.parts.state.properties.of(originals.map(({ id }) => id)),
      this.parts.times.setFor(originals),
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
