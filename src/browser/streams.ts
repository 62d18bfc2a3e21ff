import { DavError } from '../dav/errors.ts';

/** Maximum number of streams of one user: a page needs one while it is visible. */
const STREAMS_OF_USER_MAX = 20;

/** Maximum number of streams of all users, well below that of connections. */
const STREAMS_MAX = 500;

/** The open streams of all users. */
export class Streams {
  readonly #ofUser = new Map<string, number>();
  #all = 0;

  /** Counts a stream until the returned function is called. Throws `DavError` 503 when there are too many. */
  enter(user: string): () => void {
    const own = this.#ofUser.get(user) ?? 0;
    if (own >= STREAMS_OF_USER_MAX || this.#all >= STREAMS_MAX)
      throw new DavError(
        503,
        'too many pages follow the changes of the drive; this one shows them on reload',
        {
          headers: { 'Retry-After': 60 },
        },
      );
    this.#ofUser.set(user, own + 1);
    this.#all += 1;
    return () => {
      const left = (this.#ofUser.get(user) ?? 1) - 1;
      if (left > 0) this.#ofUser.set(user, left);
      else this.#ofUser.delete(user);
      this.#all -= 1;
    };
  }
}
