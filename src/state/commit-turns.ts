/** The turns in which gateways commit in one namespace of an account, one at a time. Not durable. */
export interface CommitTurnStore {
  /**
   * Asks for a turn, again and again until the answer is not `waiting`. Only batches of the same `kind` are taken with a
   * turn. `entries`: the batch that another gateway may send in its turn; empty if none may. `isRepeated`: whether this
   * `id` has asked before. `isGathering`: the answer is `waiting` unless it is known how many entries come together.
   */
  enter(request: {
    readonly id: string;
    readonly kind: string;
    readonly entries: readonly string[];
    readonly isRepeated: boolean;
    readonly isGathering: boolean;
  }): Promise<CommitTurnAnswer>;
  /** Keeps a turn from lapsing. */
  renew(id: string): Promise<void>;
  /** Ends a turn, or the wait for one, and answers the batches of other gateways that were taken with it. */
  leave(id: string, answers: readonly { readonly id: string; readonly text: string }[]): Promise<void>;
}

export type CommitTurnAnswer =
  /** So many wait, this one included. */
  | { readonly is: 'waiting'; readonly waiting: number }
  /** The turn has come, and these batches of other gateways are taken with it. */
  | {
      readonly is: 'granted';
      readonly offers: readonly { readonly id: string; readonly entries: readonly string[] }[];
    }
  /** The gateway that has taken the batch has left this answer. */
  | { readonly is: 'answered'; readonly text: string }
  /** The gateway that has taken the batch has lost its turn without an answer. */
  | { readonly is: 'lost' };
