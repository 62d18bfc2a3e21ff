import type { Change } from '../committer.ts';

/** Called with whether something changed; `false` when the wait only ends. */
export type Wake = (changed: boolean) => void;

/** A watched folder, or a folder above one. */
interface Watched {
  readonly above: Watched | undefined;
  /** Its name's key in its parent. */
  readonly name: string;
  readonly below: Map<string, Watched>;
  /** Waits for changes of its children alone. */
  readonly children: Set<Wake>;
  /** Waits for changes of everything below it. */
  readonly tree: Set<Wake>;
}

/**
 * Waits for changes, indexed by the watched folder: a commit examines only the waits it concerns, however many others
 * there are.
 */
export class Watchers {
  readonly #roots = new Map<number, Watched>();

  /** Calls `wake` once, at the next change in the scope, unless the returned function is called before. */
  add(
    scope: { readonly ns: number; readonly key: string; readonly recursive: boolean },
    wake: Wake,
  ): () => void {
    let watched = this.#roots.get(scope.ns) ?? folder('', undefined);
    this.#roots.set(scope.ns, watched);
    for (const name of namesOf(scope.key)) {
      const next = watched.below.get(name) ?? folder(name, watched);
      watched.below.set(name, next);
      watched = next;
    }
    const wakes = scope.recursive ? watched.tree : watched.children;
    const end = watched;
    wakes.add(wake);
    return () => {
      wakes.delete(wake);
      prune(end);
    };
  }

  /** Wakes the waits for the given changes. */
  notify(changes: readonly Change[]): void {
    for (const change of changes) {
      const root = this.#roots.get(change.ns);
      if (root) wakeAbout(root, change);
    }
  }

  /** Ends every wait, without a change. */
  endAll(): void {
    for (const root of this.#roots.values()) wakeWithin(root, false);
  }
}

function folder(name: string, above: Watched | undefined): Watched {
  return { above, name, below: new Map(), children: new Set(), tree: new Set() };
}

/** Returns the names of a key, from the root down. */
function namesOf(key: string): string[] {
  return key.split('/').slice(1);
}

function wakeAbout(root: Watched, { key, tree }: Change): void {
  let watched = root;
  wakeAll(root.tree, true);
  const names = namesOf(key);
  for (const [index, name] of names.entries()) {
    if (index === names.length - 1) wakeAll(watched.children, true);
    const next = watched.below.get(name);
    if (!next) return;
    watched = next;
    wakeAll(watched.tree, true);
  }
  // A listing of children also reports that the folder itself was removed or restored.
  wakeAll(watched.children, true);
  if (tree) wakeWithin(watched, true);
}

/** Wakes the waits for a folder or anything below it. */
function wakeWithin(top: Watched, changed: boolean): void {
  // A list instead of recursion: a path may have hundreds of names.
  const left = [top];
  for (let watched = left.pop(); watched; watched = left.pop()) {
    wakeAll(watched.children, changed);
    wakeAll(watched.tree, changed);
    for (const below of watched.below.values()) left.push(below);
  }
}

/** Calls each function once: a commit may contain a thousand changes that concern the same thousands of waits. */
function wakeAll(wakes: Set<Wake>, changed: boolean): void {
  if (wakes.size === 0) return;
  const woken = [...wakes];
  wakes.clear();
  for (const wake of woken) wake(changed);
}

/** Drops nodes of folders that are no longer watched. */
function prune(from: Watched): void {
  for (let watched = from; watched.above; watched = watched.above) {
    const { above, name, below, children, tree } = watched;
    if (below.size > 0 || children.size > 0 || tree.size > 0 || above.below.get(name) !== watched) return;
    above.below.delete(name);
  }
}
