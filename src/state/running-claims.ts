import { isWithin, keyOf, type Path } from '../util/path.ts';
import type { Claim, RunningClaim } from './locks.ts';

/** The claims of the requests that run in this process, by their id. */
export class RunningClaims {
  readonly #claims = new Map<string, readonly Claim[]>();
  /** Those who wait for the end of a request's claims. */
  readonly #watchers = new Map<string, Set<() => void>>();

  add(id: string, claims: readonly Claim[]): void {
    this.#claims.set(id, claims);
  }

  end(id: string): void {
    this.#claims.delete(id);
    const watchers = this.#watchers.get(id) ?? [];
    this.#watchers.delete(id);
    for (const wake of watchers) wake();
  }

  get size(): number {
    return this.#claims.size;
  }

  has(id: string): boolean {
    return this.#claims.has(id);
  }

  of(id: string): readonly Claim[] | undefined {
    return this.#claims.get(id);
  }

  all(): readonly (readonly [id: string, claims: readonly Claim[]])[] {
    return [...this.#claims];
  }

  /** A claim on something that the lock `wanted` would protect. Its cost is the number of running requests. */
  inTheWayOf(wanted: Claim): RunningClaim | undefined {
    for (const [id, claims] of this.#claims) {
      const met = claims.find((claim) => covers(wanted, claim.root) || covers(claim, wanted.root));
      if (met) return { ...met, id };
    }
    return undefined;
  }

  /** Resolves when there are no claims of this id; rejects with the signal's reason when that is aborted first. */
  ended(id: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (!this.#claims.has(id)) return resolve();
      const watchers = this.#watchers.get(id) ?? new Set();
      this.#watchers.set(id, watchers);
      const wake = () => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const stop = () => {
        watchers.delete(wake);
        reject(signal.reason);
      };
      watchers.add(wake);
      signal.addEventListener('abort', stop, { once: true });
    });
  }
}

function covers({ root, depth }: Claim, path: Path): boolean {
  return keyOf(root) === keyOf(path) || (depth === 'infinity' && isWithin(path, root));
}
