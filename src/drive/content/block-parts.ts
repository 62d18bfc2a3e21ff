import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { BlockKey } from './blocks.ts';

/** A block, or a part of it, that is kept under a name of its own. */
export interface BlockPart {
  readonly name: string;
  /** Within the block. */
  readonly from: number;
  readonly to: number;
}

/**
 * Which parts of blocks have been kept: most often the whole block and so none. Whether a part is still there is
 * for others to know.
 */
export class BlockParts {
  /** By the block's name, its parts but for the whole. */
  readonly #parts: LRUCache<string, readonly BlockPart[]>;

  constructor(blocksMax: number) {
    this.#parts = new LRUCache({ max: blocksMax });
  }

  /** The part of `block` from `from` up to `to`, remembered. */
  add(block: BlockKey, from: number, to: number): BlockPart {
    const blockName = nameOf(block);
    if (from === 0 && to === block.sizeBytes) return { name: blockName, from, to };
    const part = { name: `${blockName}-${from.toString(16)}-${to.toString(16)}`, from, to };
    this.found(part);
    return part;
  }

  /** A part that is there from an earlier time. */
  found(part: BlockPart): void {
    const blockName = /^[0-9a-f]+-[0-9a-f]+/.exec(part.name)?.[0] ?? '';
    if (part.name === blockName) return;
    const known = this.#parts.get(blockName) ?? [];
    if (!known.some(({ name }) => name === part.name)) this.#parts.set(blockName, [...known, part]);
  }

  /** All that may be there of `block`. */
  of(block: BlockKey): readonly BlockPart[] {
    const name = nameOf(block);
    const whole = { name, from: 0, to: block.sizeBytes };
    const parts = this.#parts.get(name);
    return parts ? [whole, ...parts] : [whole];
  }
}

/** Hash of the key, and the block's size in hex, so that the start needs to open no file. */
function nameOf({ content, index, sizeBytes }: BlockKey): string {
  const hash = createHash('sha256').update(`${index} ${content}`).digest('hex').slice(0, 32);
  return `${hash}-${sizeBytes.toString(16)}`;
}

const NAME = /^[0-9a-f]{32}-([0-9a-f]{1,8})(?:-([0-9a-f]{1,8})-([0-9a-f]{1,8}))?$/;

/** What the file of this name holds; `undefined` when it is not one of ours. */
export function partOf(name: string): BlockPart | undefined {
  const [whole, size = '', from = '0', to = size] = NAME.exec(name) ?? [];
  if (whole === undefined) return undefined;
  return { name, from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) };
}
