import type { Queries } from '../../../postgres/queries.ts';
import { rowsOf } from '../../../postgres/queries.ts';
import type { BlockPlace } from '../../blocks/block-place.ts';
import { collectBlocks, isSharedName } from '../../postgres/collector.ts';
import { type Damage, rowDamage } from '../damage.ts';

/** Names that are looked up at once. */
const NAMES = 1000;

/** Maximum number of blocks that are told one by one. */
const TOLD_MAX = 100;

/** How long services may take to remove a block that is due, in ms: they look every hour. */
const OVERDUE_MS = 24 * 60 * 60 * 1000;

export interface OrphanDeps {
  readonly on: Queries;
  readonly blocks: BlockPlace;
  /** How long services keep a block to which nothing refers, in ms. */
  readonly keptMs: number;
  readonly repairs: boolean;
  /** Called with the number of blocks to which nothing refers, and which services keep for a while. */
  readonly onUnowned: (count: number) => void;
}

/**
 * Yields the stored blocks that belong to nothing and that services should have removed. Younger ones may belong to an upload
 * that is under way. A repair removes what a service would remove now, in the same way.
 */
export async function* orphanDamages(deps: OrphanDeps): AsyncGenerator<Damage, void, undefined> {
  if (deps.repairs) {
    const { removed, failure } = await collectBlocks(deps, new AbortController().signal);
    if (removed > 0)
      yield { ...rowDamage(`${removed} stored blocks belong to no file and no upload`), isRepaired: true };
    if (failure !== undefined) throw failure;
  }
  let told = 0;
  let untold = 0;
  for await (const names of pagesOf(deps.blocks)) {
    const orphans = await orphansAmong(deps, names);
    deps.onUnowned(orphans.filter(({ isDue }) => !isDue).length);
    for (const { name, isDue } of orphans) {
      if (!isDue) continue;
      if (told === TOLD_MAX) untold += 1;
      else {
        told += 1;
        yield rowDamage(`the stored block ${name} belongs to no file and no upload (it only takes space)`);
      }
    }
  }
  if (untold > 0) yield rowDamage(`… and ${untold} more stored blocks belong to no file and no upload`);
}

/** Yields the names of stored blocks, many at once. */
async function* pagesOf(blocks: BlockPlace): AsyncGenerator<readonly string[]> {
  let names: string[] = [];
  for await (const name of blocks.names()) {
    if (isSharedName(name)) names.push(name);
    if (names.length < NAMES) continue;
    yield names;
    names = [];
  }
  if (names.length > 0) yield names;
}

/** Returns the blocks to which nothing refers, and whether services should have removed them. */
async function orphansAmong(
  { on, keptMs }: OrphanDeps,
  names: readonly string[],
): Promise<readonly { readonly name: string; readonly isDue: boolean }[]> {
  return await rowsOf(
    on,
    `SELECT name, coalesce(since < now() - $2 * interval '1 millisecond', false) AS "isDue"
     FROM unnest($1::text[]) AS stored (name) LEFT JOIN davgate.condemned_block USING (name)
     WHERE NOT EXISTS (SELECT FROM davgate.block_name WHERE block_name.name = stored.name)`,
    names,
    keptMs + OVERDUE_MS,
  );
}
