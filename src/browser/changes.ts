import type { DriveChange } from '../drive/changes.ts';
import { linkedSignal } from '../util/abort.ts';
import { elapsedMs } from '../util/clock.ts';
import { type Path, parentOf, ROOT } from '../util/path.ts';
import { Alarm } from '../util/wait.ts';
import type { Route } from './route.ts';

/** How long changes are gathered before they are sent together, in ms. */
const GATHER_MS = 250;

/** Longest silence of a stream, in ms: proxies close connections that are silent for 60 s. */
const HEARTBEAT_MS = 25_000;

/** How long a stream lasts, in ms. The page then opens another one, whose login is checked again. */
const STREAM_MS = 5 * 60_000;

/** Maximum number of paths in one event; beyond it, anything may have changed. */
const PATHS_MAX = 100;

/**
 * `changes`: a stream of server-sent events about the drive, for as long as a page shows it. Each event is a JSON object:
 * `folders` have other entries than before, and so may everything in `trees`; `locks` and `writes` are true when locks or
 * pending writes have changed.
 */
export const changes: Route = {
  method: 'GET',
  async run({ exchange, drive, user, isOver, clock, signal, closing, streams }) {
    const leave = streams.enter(user ?? '');
    const over = linkedSignal(signal, closing);
    const gathered = new Gathered();
    const alarm = new Alarm(clock);
    const unfollow = drive.changes.follow((change) => {
      gathered.add(change);
      alarm.ring();
    });
    // Its length says nothing about davgate's speed.
    exchange.isMonitoring = true;
    const { response } = exchange;
    const start = clock.instant();
    const send = (text: string) => exchange.write(Buffer.from(text));
    try {
      exchange.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        // Otherwise nginx keeps the events until its buffer is full.
        'X-Accel-Buffering': 'no',
      });
      await send(': davgate\n\n');
      while (!over.signal.aborted && elapsedMs(clock, start) < STREAM_MS) {
        await alarm.sleep(HEARTBEAT_MS, over.signal);
        if (!gathered.isEmpty) await clock.sleep(GATHER_MS, over.signal).catch(() => {});
        if (isOver()) break;
        await send(gathered.isEmpty ? ':\n\n' : `data: ${gathered.take()}\n\n`);
      }
      response.end();
    } finally {
      unfollow();
      over.release();
      leave();
    }
  },
};

/** Changes that were not sent yet, in bounded memory. */
class Gathered {
  readonly #folders = new Set<Path>();
  readonly #trees = new Set<Path>();
  #locks = false;
  #writes = false;

  get isEmpty(): boolean {
    return !this.#locks && !this.#writes && this.#folders.size + this.#trees.size === 0;
  }

  add(change: DriveChange): void {
    if (change.kind === 'locks') this.#locks = true;
    if (change.kind === 'writes') this.#writes = true;
    if (change.kind !== 'entry') return;
    this.#folders.add(parentOf(change.path));
    if (change.isTree) this.#trees.add(change.path);
    if (this.#folders.size + this.#trees.size <= PATHS_MAX) return;
    this.#folders.clear();
    this.#trees.clear();
    this.#trees.add(ROOT);
  }

  /** Returns the changes as JSON, and forgets them. */
  take(): string {
    const taken = {
      folders: [...this.#folders],
      trees: [...this.#trees],
      locks: this.#locks,
      writes: this.#writes,
    };
    this.#folders.clear();
    this.#trees.clear();
    this.#locks = false;
    this.#writes = false;
    return JSON.stringify(taken);
  }
}
