/** An event that a gateway has told the others. */
export interface StreamEvent {
  /** Greater by one than that of the event before it. */
  readonly position: number;
  /** The gateway that added it. */
  readonly gateway: string;
  readonly text: string;
}

/** The next events of a stream. */
export interface StreamPage {
  readonly events: readonly StreamEvent[];
  /** The position of the last event in the stream. */
  readonly end: number;
  /** Whether events between the asked position and these are not in the stream any more. */
  readonly isLost: boolean;
  /** Whether a gateway reports the change feed of the service as it happens. */
  readonly isFeedUp: boolean;
}

/**
 * The order of all changes that the gateways of one drive make or hear of. A change is acknowledged to a client when it is
 * here, so that a gateway that reads the stream shows whatever any gateway has acknowledged. Old events are dropped.
 */
export interface ChangeStream {
  /** Names this gateway in the events that it adds, from its start to its end. */
  readonly gateway: string;
  /** Adds an event, and returns its position. */
  add(text: string): Promise<number>;
  /** Returns the events after `position`; none for `undefined`, which only asks for the end. */
  after(position: number | undefined): Promise<StreamPage>;
  readonly feed: SharedFeed;
}

/** The change feed of the service, which one gateway follows for all. */
export interface SharedFeed {
  /** Takes or keeps the turn of this gateway for `leaseMs`. `isUp`: it reports changes as they happen. Returns whether it has the turn. */
  takeTurn(leaseMs: number, how: { readonly isUp: boolean }): Promise<boolean>;
  /** Gives the turn to another gateway. */
  endTurn(): Promise<void>;
  /** Returns the cursor up to which the changes are in the stream; `undefined` before the first. */
  cursor(): Promise<string | undefined>;
  /**
   * Adds an event with the changes from one cursor to the next. `from` is `undefined` when there is no earlier cursor.
   * Returns whether `from` was still the cursor: otherwise another gateway has added them, and nothing is done.
   */
  add(from: string | undefined, to: string, text: string): Promise<boolean>;
}
