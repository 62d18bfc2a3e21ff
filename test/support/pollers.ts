import { type ChildProcess, fork } from 'node:child_process';

/** Number of answers to the connections with one cursor, by outcome. */
export interface PollAnswers {
  readonly changed: number;
  readonly unchanged: number;
  readonly failed: number;
}

/** A process with long polls, `each` of them for every cursor. */
export class Pollers {
  /** Answers by cursor. */
  answers: readonly PollAnswers[] = [];
  #isOpen = false;
  #broken = false;
  readonly #watchers = new Set<() => void>();
  readonly #child: ChildProcess = fork(new URL('./pollers.mjs', import.meta.url));

  constructor() {
    this.#child.on('message', ({ answers, isOpen }: { answers: PollAnswers[]; isOpen?: boolean }) => {
      this.answers = answers;
      this.#isOpen ||= isOpen === true;
      for (const look of this.#watchers) look();
    });
    this.#child.on('exit', () => {
      this.#broken = true;
      for (const look of this.#watchers) look();
    });
  }

  /** Resolves when every connection has sent its request. */
  async open(url: string, cursors: readonly string[], each: number): Promise<void> {
    this.#child.send({ url, cursors, each });
    await this.#until(() => this.#isOpen);
  }

  /** Resolves when the answers meet `expectation`. */
  untilAnswers(expectation: (answers: readonly PollAnswers[]) => boolean): Promise<void> {
    return this.#until(() => expectation(this.answers));
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }

  #until(isIt: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!isIt() && !this.#broken) return;
        this.#watchers.delete(look);
        if (isIt()) resolve();
        else reject(new Error('the process of the waiting connections ended'));
      };
      this.#watchers.add(look);
      look();
    });
  }
}
