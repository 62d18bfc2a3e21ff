import { type Clock, type Instant, instantIn, LONG_AGO } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { waitAtMost } from '../util/wait.ts';

/** Default deadline of an answer, in ms. */
const ANSWER_MS_MAX = 1000;

/** How long the shared state is left alone after it has not answered, in ms. */
const AWAY_MS = 5000;

interface SharedAccessOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Deadline of an answer, in ms. */
  readonly answerMsMax?: number | undefined;
}

/** The way to the state that the gateways of an account share. While it is away, a gateway goes on without it. */
export class SharedAccess {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #answerMsMax: number;
  #isAway = false;
  #nextTrial: Instant = LONG_AGO;

  constructor({ clock, log, answerMsMax = ANSWER_MS_MAX }: SharedAccessOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#answerMsMax = answerMsMax;
  }

  /** Whether the last question had no answer. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** Returns the answer to a question; `undefined` without one. Never rejects, and never waits while the state is away. */
  async answer<T>(ask: () => Promise<T>): Promise<T | undefined> {
    if (this.#isAway && this.#clock.instant() < this.#nextTrial) return undefined;
    this.#nextTrial = instantIn(this.#clock, AWAY_MS);
    const answer = this.#tried(ask);
    // While the state is away, one question finds out whether it is back, and nobody waits for that.
    return this.#isAway ? undefined : await answer;
  }

  async #tried<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      const halfMs = this.#answerMsMax / 2;
      const asked = ask();
      // In two halves: a process that stood still for as long finds an answer that has come meanwhile.
      const late = () =>
        waitAtMost(this.#clock, halfMs, asked, () => {
          throw new Error(`no answer within ${this.#answerMsMax / 1000} s`);
        });
      const answer = await waitAtMost(this.#clock, halfMs, asked, late);
      this.#found();
      return answer;
    } catch (error) {
      this.#lost(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  #lost(reason: string): void {
    this.#nextTrial = instantIn(this.#clock, AWAY_MS);
    if (this.#isAway) return;
    this.#isAway = true;
    this.#log.warn('the shared budget of calls is away; this gateway limits its calls alone', { reason });
  }

  #found(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#log.info('the shared budget of calls is back');
  }
}
