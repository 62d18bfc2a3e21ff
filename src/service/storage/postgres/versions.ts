import type { Queries } from '../../postgres/queries.ts';
import { rowsOf } from '../../postgres/queries.ts';

interface Question {
  readonly resolve: (version: number | undefined) => void;
  readonly reject: (failure: unknown) => void;
}

/**
 * Asks for the current versions of namespaces. Those who ask while a statement is under way share the next one, so that
 * each gets an answer that is younger than its question.
 */
export class Versions {
  #asked = new Map<number, Question[]>();
  #isAsking = false;

  constructor(private readonly on: Queries) {}

  /** Returns the number of a namespace's last commit; `undefined` if there is no such namespace. */
  of(ns: number): Promise<number | undefined> {
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
      const rows = await rowsOf<{ id: number; version: number }>(
        this.on,
        'SELECT id, version FROM davgate.namespace WHERE id = ANY($1)',
        [...asked.keys()],
      );
      const versions = new Map(rows.map(({ id, version }) => [id, version]));
      for (const [ns, questions] of asked) for (const { resolve } of questions) resolve(versions.get(ns));
    } catch (failure) {
      for (const questions of asked.values()) for (const { reject } of questions) reject(failure);
    }
  }
}
