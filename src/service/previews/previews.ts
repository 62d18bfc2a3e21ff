import { LRUCache } from 'lru-cache';
import { type Clock, type Instant, instantIn } from '../../util/clock.ts';
import type { Html } from '../../util/html.ts';
import { programUrl } from '../../util/package.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import type { Renderings, RenderKind } from './render-process.ts';
import { Renderer, type Waiting } from './renderer.ts';

/** Maximum size of the results kept of one kind, in bytes. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
const KEPT_ENTRY_BYTES_MAX = 4 * 1024 * 1024;
/** Size of an entry beside its content, in bytes: its key and the objects around it. */
const ENTRY_BYTES = 500;

/** Maximum size of all the results that answers hold and that are too large to be kept, in bytes. */
const HELD_BYTES_MAX = 128 * 1024 * 1024;

/**
 * How long a task is not tried again after the system had no process for it, in ms: a lack of memory passes, and a document for
 * which each process is killed keeps others waiting for two processes a minute.
 */
const NO_PROCESS_MS = 60_000;

type Result<Kind extends RenderKind> = Renderings[Kind]['result'];

/** `busy`: it cannot be made now. `failed`: it can never be made. */
type NoPreview = 'busy' | 'failed';

/**
 * Previews of files, rendered in separate processes. Each kind has its own process, so that texts do not wait for
 * images.
 */
export class Previews {
  readonly text: RenderedViews<'text'>;
  readonly table: RenderedViews<'table'>;
  readonly thumbnail: RenderedViews<'thumbnail'>;
  #heldBytes = 0;

  /** `program`: the compiled `render-process.js`. */
  constructor(clock: Clock, program = programUrl('service/previews/render-process.js')) {
    const markupBytes = ({ markup }: Html) => markup.length * 2;
    this.text = new RenderedViews(clock, new Renderer('text', clock, program), markupBytes);
    this.table = new RenderedViews(clock, new Renderer('table', clock, program), markupBytes);
    this.thumbnail = new RenderedViews(
      clock,
      new Renderer('thumbnail', clock, program),
      ({ length }) => length,
    );
  }

  /**
   * Notes that an answer holds a result of `sizeBytes` until its client has read it; the returned function notes its end.
   * Returns `undefined` when answers hold too much already. A result small enough to be kept takes no more memory than a
   * download, and is not counted.
   */
  hold(sizeBytes: number): (() => void) | undefined {
    if (sizeBytes <= KEPT_ENTRY_BYTES_MAX) return () => undefined;
    if (this.#heldBytes + sizeBytes > HELD_BYTES_MAX) return undefined;
    this.#heldBytes += sizeBytes;
    return () => {
      this.#heldBytes -= sizeBytes;
    };
  }

  /** Ends the processes. Running tasks fail. */
  close(): void {
    this.text.close();
    this.table.close();
    this.thumbnail.close();
  }
}

/** Previews of one kind. Simultaneous requests for the same key share one rendering, and the result is kept. */
class RenderedViews<Kind extends RenderKind> {
  /** `failed` is kept too, so that a revision that cannot be rendered is not tried again at each visit, and `busy` for a while. */
  readonly #kept: LRUCache<string, { readonly result: Result<Kind> | NoPreview; readonly until?: Instant }>;
  readonly #underWay = new SingleFlight<string, Result<Kind> | NoPreview>();

  constructor(
    private readonly clock: Clock,
    private readonly renderer: Renderer<Kind>,
    sizeOf: (result: Result<Kind>) => number,
  ) {
    this.#kept = new LRUCache({
      maxSize: KEPT_BYTES_MAX,
      maxEntrySize: KEPT_ENTRY_BYTES_MAX,
      sizeCalculation: ({ result }) => ENTRY_BYTES + (typeof result === 'string' ? 0 : sizeOf(result)),
    });
  }

  /**
   * Returns the preview for `key`: a revision and everything else that the result depends on. `load` is called when a
   * process is free. Throws the signal's reason.
   */
  async of(
    key: string,
    load: () => Promise<Renderings[Kind]['task']>,
    { signal, line }: Waiting,
  ): Promise<Result<Kind> | NoPreview> {
    const kept = this.#kept.get(key);
    const isOver = kept?.until !== undefined && kept.until <= this.clock.instant();
    if (kept && !isOver) return kept.result;
    return await this.#underWay.run(
      key,
      (waited) => this.#render(key, load, { signal: waited, line }),
      signal,
    );
  }

  close(): void {
    this.renderer.close();
  }

  async #render(
    key: string,
    load: () => Promise<Renderings[Kind]['task']>,
    waiting: Waiting,
  ): Promise<Result<Kind> | NoPreview> {
    const result = await this.renderer.run(load, waiting);
    if (result === 'no-process') {
      this.#kept.set(key, { result: 'busy', until: instantIn(this.clock, NO_PROCESS_MS) });
      return 'busy';
    }
    if (result !== 'busy') this.#kept.set(key, { result });
    return result;
  }
}
