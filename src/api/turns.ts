import { randomUUID } from 'node:crypto';
import { type Clock, elapsedMs, type Instant, LONG_AGO } from '../util/clock.ts';
import type { SharedAccess } from './shared-access.ts';
import type { Offer, OfferAnswer, SharedTurns, TurnKind } from './shared-turns.ts';

/**
 * Minimum time between two questions of a waiting gateway, in ms: a small fraction of a call, which takes about 100. And how
 * much longer it is for each one that waits: all of them together ask 500 times a second.
 */
const ASK_EVERY_MS = { min: 5, each: 2 };

/** Time between two renewals of a turn, in ms. Two may fail before it lapses. */
const RENEW_EVERY_MS = 5000;

/** How long after another gateway was seen at work it is expected to go on, in ms. */
const COMPANY_MS = 5000;

export interface TurnsDeps {
  readonly shared: SharedTurns;
  readonly access: SharedAccess;
  readonly clock: Clock;
}

/** Work that gateways do one at a time, and for each other. */
export interface TurnWork<T> {
  readonly kind: TurnKind;
  /** The parts that another gateway may do in its turn, as JSON texts; empty if none may. */
  readonly entries: readonly string[];
  /** `false`: `run` throws `TurnTaken` instead of waiting for other gateways. Only without entries. */
  readonly waits?: boolean;
  /** Does the work, and that of the offers. Without offers it need not be this gateway's turn. */
  together(offers: readonly Offer[]): Promise<{ readonly own: T; readonly answers: readonly string[] }>;
  /** Returns the answer to an offer for a `together` that threw. */
  answerAfter(error: unknown): string;
  /** Returns the result that another gateway has told; `undefined` if the work has not been done. */
  read(text: string): T | undefined;
  /** Returns the result, or throws, when another gateway may have done the work, and nobody knows. */
  lost(): Promise<T>;
}

/** Work was not done, because other gateways have the turn or wait for it. */
export class TurnTaken extends Error {
  override readonly name = 'TurnTaken';

  constructor() {
    super('another gateway works in the namespace');
  }
}

/** The part of a gateway in the turns of a namespace. While the shared turns are away, it works without them. */
export class Turns {
  readonly #deps: TurnsDeps;
  #lastCompany: Instant = LONG_AGO;

  constructor(deps: TurnsDeps) {
    this.#deps = deps;
  }

  /** Whether other gateways take turns too. */
  get isShared(): boolean {
    return elapsedMs(this.#deps.clock, this.#lastCompany) < COMPANY_MS;
  }

  /** Does `work` when its turn has come, or returns the result of the gateway that has done it. Throws `TurnTaken`. */
  async run<T>(work: TurnWork<T>, signal: AbortSignal): Promise<T> {
    const { access, shared, clock } = this.#deps;
    const { kind, entries } = work;
    const id = randomUUID();
    let isRepeated = false;
    for (;;) {
      if (!isRepeated && access.isAway) return (await work.together([])).own;
      // The offers of others come within the time between two questions.
      const isGathering = !isRepeated && this.isShared && entries.length > 0;
      const request = { id, kind, entries, isRepeated, isGathering };
      const answer = await access.answer(() => shared.enter(request));
      switch (answer?.is) {
        case 'granted':
          if (answer.offers.length > 0) this.#lastCompany = clock.instant();
          return await this.#work(id, work, answer.offers);
        case 'answered': {
          this.#lastCompany = clock.instant();
          const result = work.read(answer.text);
          if (result !== undefined) return result;
          isRepeated = false;
          break;
        }
        case 'waiting':
          if (!isGathering) this.#lastCompany = clock.instant();
          isRepeated = true;
          if (work.waits === false) return await this.#yield(id);
          await this.#sleep(id, answer.waiting, signal);
          break;
        default:
          void this.#leave(id, []);
          // Another gateway may do the work of an offer.
          if (entries.length > 0) return await work.lost();
          return (await work.together([])).own;
      }
    }
  }

  /** Gives the place in the line back. */
  async #yield(id: string): Promise<never> {
    await this.#leave(id, []);
    throw new TurnTaken();
  }

  async #sleep(id: string, waiting: number, signal: AbortSignal): Promise<void> {
    try {
      const ms = Math.max(ASK_EVERY_MS.min, ASK_EVERY_MS.each * waiting);
      await this.#deps.clock.sleep(ms, signal);
    } catch (reason) {
      void this.#leave(id, []);
      throw reason;
    }
  }

  async #work<T>(id: string, work: TurnWork<T>, offers: readonly Offer[]): Promise<T> {
    const over = new AbortController();
    void this.#renew(id, over.signal);
    let answers: readonly string[] = [];
    try {
      const done = await work.together(offers);
      answers = done.answers;
      return done.own;
    } catch (error) {
      answers = offers.map(() => work.answerAfter(error));
      throw error;
    } finally {
      over.abort();
      await this.#leave(
        id,
        offers.map((offer, index) => ({ id: offer.id, text: answers[index] ?? '' })),
      );
    }
  }

  async #renew(id: string, signal: AbortSignal): Promise<void> {
    const { shared, access, clock } = this.#deps;
    try {
      for (;;) {
        await clock.sleep(RENEW_EVERY_MS, signal);
        await access.answer(() => shared.renew(id));
      }
    } catch {
      // The turn is over.
    }
  }

  async #leave(id: string, answers: readonly OfferAnswer[]): Promise<void> {
    const { shared, access } = this.#deps;
    await access.answer(() => shared.leave(id, answers));
  }
}
