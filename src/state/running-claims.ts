import { isWithin, keyOf, type Path } from '../util/path.ts';
import { Condition } from '../util/wait.ts';
import type { Claim, RunningClaim } from './locks.ts';

/** The claims of the running requests of this process, by id. */
export class RunningClaims {
  readonly #claims = new Map<string, readonly Claim[]>();
  /** For each id with waiting callers, the condition that its claims have ended. */
  readonly #ends = new Map<string, Condition>();

  add(id: string, claims: readonly Claim[]): void {
    this.#claims.set(id, claims);
  }

  end(id: string): void {
    this.#claims.delete(id);
    this.#ends.get(id)?.notify();
    this.#ends.delete(id);
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

  /** Returns a claim that conflicts with the lock `wanted`. Its cost is the number of running requests. */
  conflictingWith(wanted: Claim): RunningClaim | undefined {
    for (const [id, claims] of this.#claims) {
      const met = claims.find((claim) => covers(wanted, claim.root) || covers(claim, wanted.root));
      if (met) return { ...met, id };
    }
    return undefined;
  }

  /** Resolves when this id has no claims; rejects with the signal's reason when that aborts first. */
  async ended(id: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#claims.has(id)) return;
    const end = this.#ends.get(id) ?? new Condition();
    this.#ends.set(id, end);
    await end.wait(signal);
  }
}

function covers({ root, depth }: Claim, path: Path): boolean {
  return keyOf(root) === keyOf(path) || (depth === 'infinity' && isWithin(path, root));
}
