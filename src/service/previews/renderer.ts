import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import PQueue from 'p-queue';
import { linkedSignal } from '../../util/abort.ts';
import type { Clock } from '../../util/clock.ts';
import { waitAtMost } from '../../util/wait.ts';
import type { Renderings, RenderKind } from './render-process.ts';

/**
 * Maximum duration of a task, in ms, without the start of the process, which a busy machine delays. A document or image that
 * takes longer was crafted for that.
 */
const TASK_MS_MAX = 10_000;
/** Maximum number of tasks that wait outside of lines; beyond it callers get an error that asks for a retry. */
const WAITING_MAX = 32;
/** Maximum number of tasks that wait in a line. Pages of folders load an image when it is about to be seen. */
const LINE_WAITING_MAX = 1_000;
/** How long the process is kept without a task, in ms: it takes about 50 MB. */
const IDLE_MS_MAX = 60_000;
/** Limit of the process's JavaScript heap, in MB. Pixels are outside of it; `thumbnails/render.ts` limits them. */
const HEAP_MB_MAX = 256;

/**
 * `busy`: too many tasks wait. `no-process`: the system starts no process for the task or kills each. `failed`: the task took
 * too long, or the process crashed over it.
 */
type Unrendered = 'busy' | 'no-process' | 'failed';

/** How a caller waits for the result of its task. */
export interface Waiting {
  /** Aborted when the caller has left. */
  readonly signal: AbortSignal;
  /** The name of a line, for a caller that cannot ask again when the renderer is busy. */
  readonly line?: string | undefined;
}

interface Line {
  /** Number of tasks, with the one whose turn it is. */
  count: number;
  readonly turns: PQueue;
}

/**
 * Renders untrusted documents and images in a separate process, one at a time. A hostile one neither blocks the
 * service's thread nor takes its memory, and is killed when it takes too long.
 */
export class Renderer<Kind extends RenderKind> {
  readonly #queue = new PQueue({ concurrency: 1 });
  readonly #lines = new Map<string, Line>();
  #child: ChildProcess | undefined;
  /** Resolves when the process has loaded what it needs; rejects when it ends before that. */
  #ready: Promise<unknown> = Promise.resolve();
  #idle: AbortController | undefined;
  #isClosed = false;

  constructor(
    private readonly kind: Kind,
    private readonly clock: Clock,
    /** The compiled `render-process.js`. */
    private readonly program: URL,
  ) {}

  /** Loads a task when its turn comes, and returns its result. Throws the signal's reason while it waits. */
  async run(
    load: () => Promise<Renderings[Kind]['task']>,
    { signal, line }: Waiting,
  ): Promise<Renderings[Kind]['result'] | Unrendered> {
    if (line !== undefined) return await this.#runInLine(line, load, signal);
    if (this.#queue.size >= WAITING_MAX) return 'busy';
    return await this.#runInQueue(load, signal);
  }

  /** Runs the tasks of a line one after the other, so that all lines take turns. */
  async #runInLine(
    name: string,
    load: () => Promise<Renderings[Kind]['task']>,
    signal: AbortSignal,
  ): Promise<Renderings[Kind]['result'] | Unrendered> {
    const line = this.#lines.get(name) ?? { count: 0, turns: new PQueue({ concurrency: 1 }) };
    if (line.count > LINE_WAITING_MAX) return 'busy';
    this.#lines.set(name, line);
    line.count += 1;
    try {
      return await inTurn(line.turns, () => this.#runInQueue(load, signal), signal);
    } finally {
      line.count -= 1;
      if (line.count === 0) this.#lines.delete(name);
    }
  }

  async #runInQueue(
    load: () => Promise<Renderings[Kind]['task']>,
    signal: AbortSignal,
  ): Promise<Renderings[Kind]['result'] | Unrendered> {
    const run = async () => {
      if (this.#isClosed) return 'failed';
      const task = await load();
      // A second process, because the system may have killed the first one, which is not the document's fault.
      return (await this.#ask(task)) ?? (await this.#ask(task)) ?? 'no-process';
    };
    // A cast, because the process answers a task of a kind with a result of that kind.
    return (await inTurn(this.#queue, run, signal)) as Renderings[Kind]['result'] | Unrendered;
  }

  /** Ends the process for good. Running and waiting tasks fail. */
  close(): void {
    this.#isClosed = true;
    this.#endProcess();
  }

  #endProcess(): void {
    this.#idle?.abort();
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  /**
   * Returns the process's answer; `failed` if it crashes or there is no answer in time; `undefined` if there is no process
   * because of the system.
   */
  async #ask(task: Renderings[Kind]['task']): Promise<unknown> {
    if (this.#isClosed) return 'failed';
    this.#idle?.abort();
    const ended = new AbortController();
    try {
      const child = this.#child ?? this.#start();
      await this.#ready;
      const answer = this.#answer(child, task, ended.signal);
      return await waitAtMost(this.clock, TASK_MS_MAX, answer, () => {
        this.#endProcess();
        return 'failed';
      });
    } catch {
      this.#endProcess();
      return undefined;
    } finally {
      ended.abort();
      if (this.#child) void this.#endWhenIdle();
    }
  }

  async #answer(child: ChildProcess, task: Renderings[Kind]['task'], signal: AbortSignal): Promise<unknown> {
    const answered = once(child, 'message', { signal });
    // The system kills a process by SIGKILL when memory is short. Anything else is a crash.
    const gone = once(child, 'exit', { signal }).then(([, killedBy]) => [
      killedBy === 'SIGKILL' ? undefined : 'failed',
    ]);
    child.send(task);
    const [result] = await Promise.race([answered, gone]);
    return result;
  }

  /** Throws if the system has no memory for a process; other reasons reject `#ready`. */
  #start(): ChildProcess {
    const child = fork(this.program, [this.kind], {
      // Without the service's environment, which may contain secrets.
      env: { MALLOC_ARENA_MAX: '2' },
      execArgv: [`--max-old-space-size=${HEAP_MB_MAX}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // A process that cannot start, or a broken channel, is handled at its end.
    child.on('error', () => child.kill('SIGKILL'));
    child.on('exit', () => {
      if (this.#child === child) this.#child = undefined;
    });
    child.unref();
    child.channel?.unref();
    this.#child = child;
    const gone = once(child, 'exit').then(() => Promise.reject(new Error('the process ended at its start')));
    this.#ready = Promise.race([once(child, 'message'), gone]);
    // It may end when nobody waits any more.
    this.#ready.catch(() => {});
    gone.catch(() => {});
    return child;
  }

  async #endWhenIdle(): Promise<void> {
    const idle = new AbortController();
    this.#idle = idle;
    await this.clock.sleep(IDLE_MS_MAX, idle.signal).then(
      () => this.#endProcess(),
      () => undefined,
    );
  }
}

/**
 * Runs `work` when its turn comes, unless `signal` is aborted before. The queue does not see a later abort, after which it
 * would begin the next task.
 */
function inTurn<T>(queue: PQueue, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const waiting = linkedSignal(signal);
  const run = () => {
    waiting.release();
    return work();
  };
  return queue.add(run, { signal: waiting.signal });
}
