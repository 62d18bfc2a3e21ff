import type { Change } from './committer.ts';
import { ancestorsOf } from './names.ts';

/** Told with whether something changed, or only the wait ends. */
export type Wake = (changed: boolean) => void;

/**
 * Those who wait for a change, found by the folder they watch: a commit wakes whom it concerns and looks
 * at no one else, however many wait.
 */
export class Watchers {
  readonly #byNamespace = new Map<number, Map<string, Set<Wake>>>();

  /** Calls `wake` at each change the scope covers, until the returned function is called. */
  add(
    scope: { readonly ns: number; readonly key: string; readonly recursive: boolean },
    wake: Wake,
  ): () => void {
    const scopes = this.#byNamespace.get(scope.ns) ?? new Map<string, Set<Wake>>();
    this.#byNamespace.set(scope.ns, scopes);
    const name = scopeName(scope.key, scope.recursive);
    const wakes = scopes.get(name) ?? new Set();
    scopes.set(name, wakes);
    wakes.add(wake);
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0 && scopes.get(name) === wakes) scopes.delete(name);
    };
  }

  /** Wakes whoever watches something that changed. */
  notify(changes: readonly Change[]): void {
    for (const change of changes) {
      const scopes = this.#byNamespace.get(change.ns);
      if (!scopes || scopes.size === 0) continue;
      const above = ancestorsOf(change.key);
      // Who lists a folder must hear when the folder itself goes or comes back.
      for (const name of [scopeName(above.at(-1) ?? '', false), scopeName(change.key, false)])
        wakeAll(scopes, name);
      for (const key of [...above, change.key]) wakeAll(scopes, scopeName(key, true));
      if (!change.tree) continue;
      for (const name of [...scopes.keys()]) if (name.startsWith(`${change.key}/`, 1)) wakeAll(scopes, name);
    }
  }

  /** Ends every wait, with nothing changed. */
  endAll(): void {
    for (const scopes of this.#byNamespace.values())
      for (const name of [...scopes.keys()]) wakeAll(scopes, name, false);
  }
}

/** Those who watch children alone and those who watch a whole tree stand apart. */
function scopeName(key: string, recursive: boolean): string {
  return (recursive ? 't' : 'c') + key;
}

/** From a copy: who is woken takes itself out. */
function wakeAll(scopes: Map<string, Set<Wake>>, name: string, changed = true): void {
  for (const wake of [...(scopes.get(name) ?? [])]) wake(changed);
}
