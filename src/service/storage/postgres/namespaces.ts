import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase } from '../storage-database.ts';
import { whileConnectionsFail } from './connections.ts';
import { namespaceNamed } from './namespace-rows.ts';
import { type NamespaceNeeds, OpenNamespace } from './open-namespace.ts';

/** Maximum number, and size in bytes, of the copies that a process keeps although nobody uses them. */
const UNUSED_MAX = 100;
const UNUSED_BYTES_MAX = 4 * 1024 ** 3;

/** Size of the page cache of a copy, in KiB: its file is in the memory of the operating system. */
const CACHE_KIB = 1024;

interface Held {
  readonly ns: number;
  readonly opening: Promise<OpenNamespace>;
  readonly file: string;
  users: number;
  waits: number;
  /** Size at its last use, in bytes. */
  bytes: number;
}

/** The namespaces of which this process has copies. A copy is loaded at its first use. */
export class Namespaces {
  /** By number, the least recently used first. */
  readonly #held = new Map<number, Held>();
  readonly #numbers = new Map<string, number>();
  #closing: Promise<void>[] = [];
  #isClosed = false;

  constructor(
    private readonly folder: string,
    private readonly needs: NamespaceNeeds,
    private readonly unusedBytesMax = UNUSED_BYTES_MAX,
  ) {}

  /** Runs `use` with a namespace that has all earlier commits. Throws `DatabaseAwayError`. */
  async with<T>(name: string, use: (namespace: OpenNamespace) => Promise<T>): Promise<T> {
    return await this.at(await this.#numberOf(name), use);
  }

  /** Like `with`, by the number of the namespace. */
  async at<T>(ns: number, use: (namespace: OpenNamespace) => Promise<T>): Promise<T> {
    const held = await this.#holdFresh(ns);
    try {
      return await use(await held.opening);
    } finally {
      this.#release(held);
    }
  }

  /** Like `with`, for a sequence; the copy stays while it is read. */
  async *iterate<T>(
    name: string,
    use: (namespace: OpenNamespace) => AsyncIterable<T>,
  ): AsyncGenerator<T, void, undefined> {
    const held = await this.#holdFresh(await this.#numberOf(name));
    try {
      yield* use(await held.opening);
    } finally {
      this.#release(held);
    }
  }

  /** Like `at`, for a call that waits for a change, of which `changed` has to tell the copy. */
  async watching<T>(ns: number, use: (namespace: OpenNamespace) => Promise<T>): Promise<T> {
    const held = await this.#holdFresh(ns);
    held.waits += 1;
    try {
      const namespace = await held.opening;
      // What was committed before the wait counted is not told.
      await namespace.fresh();
      return await use(namespace);
    } finally {
      held.waits -= 1;
      this.#release(held);
    }
  }

  /** The numbers of the namespaces of which this process has copies. */
  get inUse(): readonly number[] {
    return [...this.#held.keys()];
  }

  /** The numbers of namespaces in which a call waits for a change. */
  get watched(): readonly number[] {
    return [...this.#held].flatMap(([ns, { waits }]) => (waits > 0 ? [ns] : []));
  }

  /** Brings the copy of a namespace up to date if a call waits for a change in it. */
  async changed(ns: number): Promise<void> {
    const held = this.#held.get(ns);
    if (held && held.waits > 0) await (await held.opening).fresh();
  }

  /** Ends all waits, finishes accepted work, and removes the copies. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const held of this.#held.values()) this.#drop(held);
    await Promise.all(this.#closing);
  }

  async #numberOf(name: string): Promise<number> {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const row = await whileConnectionsFail(this.needs.clock, () => namespaceNamed(this.needs.pool, name));
    if (!row) throw new Error(`there is no namespace ${JSON.stringify(name)}: create it first`);
    this.#numbers.set(name, row.id);
    return row.id;
  }

  /** Returns a namespace whose copy has all earlier commits. */
  async #holdFresh(ns: number): Promise<Held> {
    for (;;) {
      const held = this.#hold(ns);
      try {
        const namespace = await held.opening;
        await namespace.fresh();
        held.bytes = namespace.bytes;
        if (!namespace.isStale) return held;
      } catch (failure) {
        this.#release(held);
        throw failure;
      }
      if (this.#held.get(ns) === held) this.#held.delete(ns);
      this.#release(held);
    }
  }

  #hold(ns: number): Held {
    const held = this.#held.get(ns) ?? this.#open(ns);
    // The most recently used one is the last.
    this.#held.delete(ns);
    this.#held.set(ns, held);
    held.users += 1;
    return held;
  }

  #open(ns: number): Held {
    if (this.#isClosed) throw new Error('the storage is closed');
    const file = join(this.folder, `${ns}-${randomUUID()}.sqlite`);
    const opening = this.#opened(ns, file);
    // The next call tries again.
    opening.catch(() => {
      if (this.#held.get(ns)?.opening === opening) this.#held.delete(ns);
    });
    return { ns, opening, file, users: 0, waits: 0, bytes: 0 };
  }

  async #opened(ns: number, file: string): Promise<OpenNamespace> {
    const database = await openDatabase(file, { cacheKib: CACHE_KIB, isCopy: true });
    try {
      return new OpenNamespace(ns, database, this.needs);
    } catch (failure) {
      database.close();
      throw failure;
    }
  }

  #release(held: Held): void {
    held.users -= 1;
    // A stale copy ends with its last user.
    if (held.users === 0 && this.#held.get(held.ns) !== held) {
      this.#drop(held);
      return;
    }
    const unused = [...this.#held.values()].filter(({ users }) => users === 0);
    let bytes = unused.reduce((sum, one) => sum + one.bytes, 0);
    for (const [index, one] of unused.entries()) {
      const count = unused.length - index;
      // The one that was used last stays, whatever its size.
      if (count === 1 || (count <= UNUSED_MAX && bytes <= this.unusedBytesMax)) return;
      this.#drop(one);
      bytes -= one.bytes;
    }
  }

  #drop(held: Held): void {
    const { ns, opening, file } = held;
    if (this.#held.get(ns) === held) this.#held.delete(ns);
    const closing = opening
      .then((namespace) => namespace.close())
      .catch(() => undefined)
      .then(async () => {
        for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true });
      })
      .finally(() => {
        this.#closing = this.#closing.filter((one) => one !== closing);
      });
    this.#closing.push(closing);
  }
}
