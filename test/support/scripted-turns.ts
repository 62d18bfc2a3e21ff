import { SharedAccess } from '../../src/api/shared-access.ts';
import type { OfferAnswer, SharedTurns, TurnAnswer, TurnRequest } from '../../src/api/shared-turns.ts';
import { Turns } from '../../src/api/turns.ts';
import { silentLog } from '../../src/util/log.ts';
import { ManualClock } from './manual-clock.ts';

/** Shared turns whose answers a test sets, in order. Without one, they are away. */
export class ScriptedTurns implements SharedTurns {
  readonly asked: TurnRequest[] = [];
  readonly left: (readonly OfferAnswer[])[] = [];
  renewals = 0;
  readonly #answers: TurnAnswer[];

  constructor(answers: readonly TurnAnswer[]) {
    this.#answers = [...answers];
  }

  async enter(request: TurnRequest): Promise<TurnAnswer> {
    this.asked.push(request);
    const answer = this.#answers.shift();
    if (!answer) throw new Error('away');
    return answer;
  }

  async renew(): Promise<void> {
    this.renewals += 1;
  }

  async leave(_: string, answers: readonly OfferAnswer[]): Promise<void> {
    this.left.push(answers);
  }
}

/** A gateway's part in turns with these answers. */
export function scriptedTurns(...answers: TurnAnswer[]) {
  const clock = new ManualClock();
  const shared = new ScriptedTurns(answers);
  const turns = new Turns({ shared, access: new SharedAccess({ clock, log: silentLog }), clock });
  return { clock, shared, turns };
}

export const WAITING: TurnAnswer = { is: 'waiting', waiting: 1 };
export const LOST: TurnAnswer = { is: 'lost' };

export const granted = (...offers: readonly (readonly string[])[]): TurnAnswer => ({
  is: 'granted',
  offers: offers.map((entries, index) => ({ id: `offer-${index}`, entries })),
});

export const answered = (text: string): TurnAnswer => ({ is: 'answered', text });
