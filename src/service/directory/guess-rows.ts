import type { GuessStore } from '../../http/guess-counter.ts';

/** Wrong passwords of accounts and of links. They survive a kill of the process, but not all of them a power cut. */
export interface GuessRows extends GuessStore {
  /** Forgets up to `limit` guesses that no longer count. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}
