import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';

/** Exit code of a program ended by Ctrl+C, as in shells. */
const EXIT_INTERRUPTED = 130;

/** Asks a person at the terminal, with readline's editing. Prompts go to standard error, so that output can be piped. */
export class Dialog {
  readonly #lines: Interface;
  #isHidden = false;
  #hasEnded = false;

  constructor() {
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (!this.#isHidden) process.stderr.write(chunk);
        done();
      },
    });
    this.#lines = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
    this.#lines.on('SIGINT', () => {
      this.#lines.close();
      process.stderr.write('\n');
      process.exit(EXIT_INTERRUPTED);
    });
    this.#lines.once('close', () => {
      this.#hasEnded = true;
    });
  }

  /** Returns the typed line; `undefined` when the input has ended. */
  async ask(prompt: string): Promise<string | undefined> {
    if (this.#hasEnded) return undefined;
    const typed = this.#line();
    this.#lines.setPrompt(prompt);
    this.#lines.prompt();
    return typed;
  }

  /** Like `ask`, but does not show what is typed. */
  async askHidden(prompt: string): Promise<string | undefined> {
    if (this.#hasEnded) return undefined;
    this.#isHidden = true;
    try {
      process.stderr.write(prompt);
      const line = await this.#line();
      process.stderr.write('\n');
      return line;
    } finally {
      this.#isHidden = false;
    }
  }

  close(): void {
    this.#lines.close();
  }

  #line(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const ended = () => resolve(undefined);
      this.#lines.once('close', ended);
      this.#lines.once('line', (line) => {
        this.#lines.off('close', ended);
        resolve(line);
      });
    });
  }
}

/** Runs `work` with a dialog that is closed afterwards. */
export async function withDialog<T>(work: (dialog: Dialog) => Promise<T>): Promise<T> {
  const dialog = new Dialog();
  try {
    return await work(dialog);
  } finally {
    dialog.close();
  }
}
