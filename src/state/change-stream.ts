/** The place of an event in a stream. */
export interface StreamPosition {
  /** The lifetime of the stream: another one begins when it has lost events. */
  readonly lifetime: string;
  /** Greater by one than that of the event before it, and given again when the event is lost. */
  readonly number: number;
  /** Differs from that of any other event that is given the same number. */
  readonly nonce: string;
}

/** An event that a gateway has told the others. */
export interface StreamEvent {
  readonly position: StreamPosition;
  /** The gateway that added it. */
  readonly gateway: string;
  readonly text: string;
}

/** The next events of a stream. */
export interface StreamPage {
  readonly events: readonly StreamEvent[];
  /** The position of the last event in the stream. */
  readonly end: StreamPosition;
  /** Whether events at the asked position, or between it and these, are not in the stream any more. */
  readonly isLost: boolean;
  /** Whether a gateway reports the change feed of the service as it happens. */
  readonly isFeedUp: boolean;
}

/** An event that was added. */
export interface AddedEvent {
  readonly position: StreamPosition;
  /** The position of the event before it. */
  readonly before: StreamPosition;
}

/**
 * The order of all changes that the gateways of one drive make or hear of. A change is acknowledged to a client when it is
 * here, so that a gateway that reads the stream shows whatever any gateway has acknowledged. Old events are dropped.
 */
export interface ChangeStream {
  /** Names this gateway in the events that it adds, from its start to its end. */
  readonly gateway: string;
  /** Adds an event. `read`: the position that the gateway has read. */
  add(text: string, read: StreamPosition | undefined): Promise<AddedEvent>;
  /** Returns the events after `read`; none for `undefined`, which only asks for the end. */
  after(read: StreamPosition | undefined): Promise<StreamPage>;
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
