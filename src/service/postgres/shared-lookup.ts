import { Batches } from './batches.ts';

/** Maximum number of keys in one statement. */
const KEYS_MAX = 1000;

interface Question<Key, Answer> {
  readonly key: Key;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly reject: (failure: unknown) => void;
}

/** Lookups that come while another one is under way share a statement. Each answer is younger than its question. */
export class SharedLookup<Key, Answer> {
  readonly #questions: Batches<Question<Key, Answer>>;

  /** `lookUp` returns the answers to different keys, as far as there are any. */
  constructor(private readonly lookUp: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Answer>>) {
    this.#questions = new Batches(KEYS_MAX, (questions) => this.#answer(questions));
  }

  /** Returns the answer to a key; `undefined` if there is none. Throws why the statement failed. */
  of(key: Key): Promise<Answer | undefined> {
    return new Promise((resolve, reject) => this.#questions.add({ key, resolve, reject }));
  }

  async #answer(questions: readonly Question<Key, Answer>[]): Promise<void> {
    try {
      const answers = await this.lookUp([...new Set(questions.map(({ key }) => key))]);
      for (const { key, resolve } of questions) resolve(answers.get(key));
    } catch (failure) {
      for (const { reject } of questions) reject(failure);
    }
  }
}
