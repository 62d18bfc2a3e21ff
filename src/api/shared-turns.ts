/**
 * The turns in which the gateways of one account work in one namespace, one at a time. A gateway that waits for its turn
 * offers its work: the gateway whose turn it is does it along with its own. `src/app/drives.ts` passes a driver of
 * `src/state/`. Its methods may reject, and may take any time.
 */
export interface SharedTurns {
  /**
   * Asks for a turn, again and again until the answer is not `waiting`. A waiting gateway that does not ask for some
   * seconds loses its place.
   */
  enter(request: TurnRequest): Promise<TurnAnswer>;
  /** Keeps a turn from lapsing, which it does after some seconds. */
  renew(id: string): Promise<void>;
  /** Ends a turn, or the wait for one, and answers the offers that were taken with it. */
  leave(id: string, answers: readonly OfferAnswer[]): Promise<void>;
}

/** Staging waits for commits too: more short contents come together meanwhile. */
export type TurnKind = 'commit' | 'staging';

export interface TurnRequest {
  /** Unique in all gateways. */
  readonly id: string;
  /** Only offers of the same kind are taken with a turn. */
  readonly kind: TurnKind;
  /** The entries of the work as JSON texts; empty if no other gateway may do it. */
  readonly entries: readonly string[];
  /** Whether this `id` has asked before. */
  readonly isRepeated: boolean;
  /** Whether the answer shall be `waiting` unless it is known how many offers come, so that others can make theirs. */
  readonly isGathering: boolean;
}

export type TurnAnswer =
  /** So many wait, this one included. */
  | { readonly is: 'waiting'; readonly waiting: number }
  /** The turn has come. The offers of other gateways are taken with it. */
  | { readonly is: 'granted'; readonly offers: readonly Offer[] }
  /** Another gateway has taken the offer, and has ended its turn with this answer. */
  | { readonly is: 'answered'; readonly text: string }
  /** Another gateway may have sent the offer, and nobody knows what became of it. */
  | { readonly is: 'lost' };

/** A batch of another gateway. */
export interface Offer {
  readonly id: string;
  readonly entries: readonly string[];
}

export interface OfferAnswer {
  readonly id: string;
  readonly text: string;
}
