import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase } from '../storage-database.ts';
import { whileConnectionsFail } from './connections.ts';
import { LostNamespaceError } from './lost-namespace.ts';
import { type NamespaceNumbers, numbersIn } from './namespace-lookups.ts';
import { putNamespace } from './namespace-rows.ts';
import { type NamespaceDeps, OpenNamespace } from './open-namespace.ts';

/**
 * Maximum number, and size in bytes, of the copies that a process keeps although nobody uses them. The number is at least
 * `TIDIED_AT_ONCE`: the copies that a round of housekeeping loads are there at its end.
 */
const UNUSED_MAX = 100;
const UNUSED_BYTES_MAX = 4 * 1024 ** 3;

/** Size of the page cache of a copy, in KiB: its file is in the memory of the operating system. */
const CACHE_KIB = 1024;

/** The folder of a process with its copies. */
export interface CopyFolder {
  readonly path: string;
  /** The file of a copy without rows. */
  readonly empty: Buffer;
}

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
  /** The numbers of the namespaces that this process has loaded, by name. */
  readonly #numbers = new Map<string, number>();
  /** The limits in bytes of namespaces that this process has created or changed, by name. */
  readonly #limits = new Map<string, number>();
  readonly #lookup: NamespaceNumbers;
  #closing: Promise<void>[] = [];
  #isClosed = false;

  constructor(
    private readonly folder: CopyFolder,
    private readonly deps: NamespaceDeps,
    private readonly unusedBytesMax = UNUSED_BYTES_MAX,
  ) {
    this.#lookup = numbersIn(deps.pool);
  }

  /** Creates a namespace, or changes its limit. Asks nobody if this process knows of no other limit. */
  async create(name: string, limitBytes: number): Promise<void> {
    const isSet = this.#limits.get(name) === limitBytes;
    // Another process may have changed it since.
    if (isSet && ((await this.#copiedLimit(name)) ?? limitBytes) === limitBytes) return;
    await this.#put(name, limitBytes);
  }

  /** Returns the limit of a namespace as the copy of this process has it; `undefined` without a copy. */
  async #copiedLimit(name: string): Promise<number | undefined> {
    const ns = this.#numbers.get(name);
    const held = ns === undefined ? undefined : this.#held.get(ns);
    const namespace = await held?.opening.catch(() => undefined);
    return namespace?.name === name ? namespace.limitBytes : undefined;
  }

  async #put(name: string, limitBytes: number): Promise<void> {
    await whileConnectionsFail(this.deps.clock, () => putNamespace(this.deps.pool, name, limitBytes));
    this.#limits.set(name, limitBytes);
  }

  /** Runs `use` with a namespace that has all earlier commits. Throws `DatabaseAwayError`. */
  async with<T>(name: string, use: (namespace: OpenNamespace) => Promise<T>): Promise<T> {
    const held = await this.#holdNamed(name);
    try {
      return await use(await held.opening);
    } finally {
      this.#release(held);
    }
  }

  /**
   * Like `with`, if this process has a copy of the namespace. Otherwise resolves with `undefined`, without a question to the
   * database.
   */
  async withHeld<T>(name: string, use: (namespace: OpenNamespace) => Promise<T>): Promise<T | undefined> {
    const ns = this.#numbers.get(name);
    return ns !== undefined && this.#held.has(ns) ? await this.with(name, use) : undefined;
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
    const held = await this.#holdNamed(name);
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

  /**
   * Returns the namespace with this name, whose copy has all earlier commits. Its number can change while the process runs: a
   * promoted standby that lacked it may have given the number to another namespace.
   */
  async #holdNamed(name: string): Promise<Held> {
    const known = this.#numbers.get(name);
    const held = known === undefined ? undefined : await this.#holdIfNamed(known, name);
    if (held) return held;
    const ns = await this.#find(name);
    const found = await this.#holdIfNamed(ns, name);
    if (!found) throw new LostNamespaceError(ns);
    return found;
  }

  /** Like `#holdFresh`; returns `undefined` if the number is not, or no longer, that of the namespace with this name. */
  async #holdIfNamed(ns: number, name: string): Promise<Held | undefined> {
    try {
      const held = await this.#holdFresh(ns);
      if ((await held.opening).name === name) return held;
      this.#release(held);
    } catch (failure) {
      if (!(failure instanceof LostNamespaceError)) throw failure;
    }
    this.#numbers.delete(name);
    return undefined;
  }

  /** Returns the number of the namespace with this name. Creates one again that this process has created before. */
  async #find(name: string): Promise<number> {
    const find = () => whileConnectionsFail(this.deps.clock, () => this.#lookup.of(name));
    let ns = await find();
    const limitBytes = this.#limits.get(name);
    if (ns === undefined && limitBytes !== undefined) {
      await this.#put(name, limitBytes);
      ns = await find();
    }
    if (ns === undefined) throw new Error(`there is no namespace ${JSON.stringify(name)}: create it first`);
    return ns;
  }

  /** Returns a namespace whose copy has all earlier commits. */
  async #holdFresh(ns: number): Promise<Held> {
    for (;;) {
      const held = this.#hold(ns);
      try {
        const namespace = await held.opening;
        await namespace.fresh();
        held.bytes = namespace.bytes;
        if (!namespace.isStale) {
          if (namespace.name !== undefined) this.#numbers.set(namespace.name, ns);
          return held;
        }
      } catch (failure) {
        if (failure instanceof LostNamespaceError && this.#held.get(ns) === held) this.#held.delete(ns);
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
    const file = join(this.folder.path, `${ns}-${randomUUID()}.sqlite`);
    const opening = this.#opened(ns, file);
    // The next call tries again.
    opening.catch(() => {
      if (this.#held.get(ns)?.opening === opening) this.#held.delete(ns);
    });
    return { ns, opening, file, users: 0, waits: 0, bytes: 0 };
  }

  async #opened(ns: number, file: string): Promise<OpenNamespace> {
    // Creating the tables would take most of the time that a copy takes to open.
    await writeFile(file, this.folder.empty, { mode: 0o600 });
    const database = await openDatabase(file, { cacheKib: CACHE_KIB, isCopy: true });
    try {
      return new OpenNamespace(ns, database, this.deps);
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
