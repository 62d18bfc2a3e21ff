import type { Change } from '../committer.ts';

/** Told with whether something changed, or only the wait ends. */
export type Wake = (changed: boolean) => void;

/** A folder that someone watches, or that is above such a one. */
interface Watched {
  readonly above: Watched | undefined;
  /** Its name's key in the folder above. */
  readonly name: string;
  readonly below: Map<string, Watched>;
  /** Who watches its children alone. */
  readonly children: Set<Wake>;
  /** Who watches all that is below it. */
  readonly tree: Set<Wake>;
}

/**
 * Those who wait for a change, found by the folder they watch: a commit wakes whom it concerns and looks
 * at no one else, however many wait and however many folders are watched.
 */
export class Watchers {
  readonly #roots = new Map<number, Watched>();

  /** Calls `wake` once, at the next change the scope covers, unless the returned function is called before. */
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

  /** Wakes whoever watches something that changed. */
  notify(changes: readonly Change[]): void {
    for (const change of changes) {
      const root = this.#roots.get(change.ns);
      if (root) wakeAbout(root, change);
    }
  }

  /** Ends every wait, with nothing changed. */
  endAll(): void {
    for (const root of this.#roots.values()) wakeWithin(root, false);
  }
}

function folder(name: string, above: Watched | undefined): Watched {
  return { above, name, below: new Map(), children: new Set(), tree: new Set() };
}

/** From the root down. */
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
  // Who lists a folder must hear when the folder itself goes or comes back.
  wakeAll(watched.children, true);
  if (tree) wakeWithin(watched, true);
}

/** Those who watch a folder, or anything below it. */
function wakeWithin(top: Watched, changed: boolean): void {
  // With a list in place of recursion: a path may have hundreds of names.
  const left = [top];
  for (let watched = left.pop(); watched; watched = left.pop()) {
    wakeAll(watched.children, changed);
    wakeAll(watched.tree, changed);
    for (const below of watched.below.values()) left.push(below);
  }
}

/** Each once: a commit may hold a thousand changes that concern the same thousands of waiting calls. */
function wakeAll(wakes: Set<Wake>, changed: boolean): void {
  if (wakes.size === 0) return;
  const woken = [...wakes];
  wakes.clear();
  for (const wake of woken) wake(changed);
}

/** Takes out the folders that nobody watches any more. */
function prune(from: Watched): void {
  for (let watched = from; watched.above; watched = watched.above) {
    const { above, name, below, children, tree } = watched;
    if (below.size > 0 || children.size > 0 || tree.size > 0 || above.below.get(name) !== watched) return;
    above.below.delete(name);
  }
}
