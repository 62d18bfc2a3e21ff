import type { Pool } from 'pg';
import type { NamespaceRow } from './namespace-change.ts';

/** The last commit of a namespace. */
export type LastCommit = Pick<NamespaceRow, 'version' | 'mark'>;

interface Question {
  readonly resolve: (last: LastCommit | undefined) => void;
  readonly reject: (failure: unknown) => void;
}

/** How long the answer may take, in ms, before another connection is tried: all calls wait for it. */
const TIMEOUT_MS = 3000;

/**
 * Asks for the last commits of namespaces. Those who ask while a statement is under way share the next one, so that each
 * gets an answer that is younger than its question.
 */
export class Versions {
  #asked = new Map<number, Question[]>();
  #isAsking = false;

  constructor(private readonly pool: Pool) {}

  /** Returns the last commit of a namespace; `undefined` if there is no such namespace. */
  of(ns: number): Promise<LastCommit | undefined> {
    return new Promise((resolve, reject) => {
      const questions = this.#asked.get(ns) ?? [];
      questions.push({ resolve, reject });
      this.#asked.set(ns, questions);
      if (!this.#isAsking) void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    // Those who ask in the same turn of the event loop share a statement too.
    await Promise.resolve();
    while (this.#asked.size > 0) {
      const asked = this.#asked;
      this.#asked = new Map();
      await this.#answer(asked);
    }
    this.#isAsking = false;
  }

  async #answer(asked: ReadonlyMap<number, readonly Question[]>): Promise<void> {
    try {
      const query = {
        text: 'SELECT id, version, mark FROM davgate.namespace WHERE id = ANY($1)',
        values: [[...asked.keys()]],
        query_timeout: TIMEOUT_MS,
      };
      const { rows } = await this.pool.query<LastCommit & { readonly id: number }>(query);
      const last = new Map(rows.map((row) => [row.id, row]));
      for (const [ns, questions] of asked) for (const { resolve } of questions) resolve(last.get(ns));
    } catch (failure) {
      for (const questions of asked.values()) for (const { reject } of questions) reject(failure);
    }
  }
}
