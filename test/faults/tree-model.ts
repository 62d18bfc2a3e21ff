import { contentHashOf } from '../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';

/** A file's content: its hash, and the seed and size from which its bytes are made. */
export interface Content {
  readonly seed: number;
  readonly sizeBytes: number;
  readonly hash: string;
}

export type Node = 'folder' | Content;

export function contentOf(seed: number, sizeBytes: number): Content {
  return { seed, sizeBytes, hash: contentHashOf(bytesOf({ seed, sizeBytes })) };
}

export function bytesOf({ seed, sizeBytes }: Pick<Content, 'seed' | 'sizeBytes'>): Buffer {
  return pseudoRandomBytes(sizeBytes, seed);
}

/** The entries that a client expects below its folder, by path, parents before children. */
export class TreeModel {
  constructor(readonly nodes: ReadonlyMap<string, Node> = new Map()) {}

  with(path: string, node: Node): TreeModel {
    return new TreeModel(new Map([...this.nodes, [path, node]]));
  }

  without(path: string): TreeModel {
    return new TreeModel(new Map([...this.nodes].filter(([at]) => !isWithin(at, path))));
  }

  /** Returns the tree with `from` and all below it copied to `to`, in place of the entry there. */
  copied(from: string, to: string): TreeModel {
    const copies = [...this.nodes]
      .filter(([at]) => isWithin(at, from))
      .map(([at, node]) => [to + at.slice(from.length), node] as const);
    return new TreeModel(new Map([...this.without(to).nodes, ...copies]));
  }

  moved(from: string, to: string): TreeModel {
    return this.copied(from, to).without(from);
  }

  paths(kind: 'file' | 'folder'): string[] {
    return [...this.nodes]
      .filter(([, node]) => (node === 'folder') === (kind === 'folder'))
      .map(([at]) => at);
  }

  childrenOf(folder: string): string[] {
    return [...this.nodes.keys()].filter((at) => at.slice(0, at.lastIndexOf('/')) === folder);
  }

  /** Returns a size or `folder` for each path, to compare with a PROPFIND. */
  sizes(): Record<string, string | number> {
    return Object.fromEntries(
      [...this.nodes].map(([at, node]) => [at, node === 'folder' ? node : node.sizeBytes]),
    );
  }

  /** Returns a hash or `folder` for each path, to compare with the service. */
  digest(): Record<string, string> {
    return Object.fromEntries(
      [...this.nodes].map(([at, node]) => [at, node === 'folder' ? node : node.hash]),
    );
  }
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
