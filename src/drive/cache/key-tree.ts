import { parentKeyOf, ROOT } from '../../util/path.ts';

/** A set of path keys that finds the members at and below a key without scanning the others. */
export class KeyTree {
  readonly #members = new Set<string>();
  /** For each key, the keys one level below it that are members or lead to members. */
  readonly #below = new Map<string, Set<string>>();

  add(key: string): void {
    this.#members.add(key);
    for (let child = key; child !== ROOT; child = parentKeyOf(child)) {
      const parent = parentKeyOf(child);
      const siblings = this.#below.get(parent);
      if (siblings?.has(child)) return;
      if (siblings) siblings.add(child);
      else this.#below.set(parent, new Set([child]));
    }
  }

  delete(key: string): void {
    if (!this.#members.delete(key)) return;
    let child = key;
    while (child !== ROOT && !this.#members.has(child) && !this.#below.has(child)) {
      const parent = parentKeyOf(child);
      const siblings = this.#below.get(parent);
      siblings?.delete(child);
      if (siblings?.size === 0) this.#below.delete(parent);
      child = parent;
    }
  }

  /** Returns the members at `key` and below. */
  within(key: string): string[] {
    const found: string[] = [];
    const pending = [key];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (this.#members.has(next)) found.push(next);
      for (const child of this.#below.get(next) ?? []) pending.push(child);
    }
    return found;
  }

  /** Returns the keys directly below `key` that are members or lead to members. */
  below(key: string): string[] {
    return [...(this.#below.get(key) ?? [])];
  }

  clear(): void {
    this.#members.clear();
    this.#below.clear();
  }
}
