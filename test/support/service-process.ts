import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Usage {
  /** Processor time since the start of the process, in ms. */
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

/** The storage service in its own process, which can be ended and started again on its data directory. */
export class ServiceProcess {
  url = '';
  token = '';
  /** Text of its warnings. */
  warnings = '';
  #child: ChildProcess | undefined;

  constructor(
    /** URL of the compiled `service/server.js`. */
    private readonly serverUrl: string,
    readonly dataDirectory: string,
    /** Some `ServiceOptions`. Their types are repeated because the benchmarks are compiled without the sources. */
    private readonly options: {
      readonly steps?: { readonly stagedRowsMax?: number; readonly removedRowsMax?: number };
      readonly faults?: Readonly<Record<string, number>>;
      readonly metadata?: string;
      readonly blocks?: object;
    } = {},
  ) {}

  async start(): Promise<void> {
    const clockUrl = new URL('../util/clock.js', this.serverUrl).href;
    const program = fileURLToPath(new URL('./service-process.mjs', import.meta.url));
    const options = JSON.stringify(this.options);
    const child = spawn(process.execPath, [program, this.serverUrl, clockUrl, this.dataDirectory, options], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    child.stderr?.on('data', (chunk: Buffer) => {
      this.warnings += chunk;
    });
    const started = await Promise.race([
      once(child.stdout ?? child, 'data').then(([line]) => String(line)),
      once(child, 'close').then(() => {
        throw new Error(`the service did not start: ${this.warnings}`);
      }),
    ]);
    Object.assign(this, JSON.parse(started));
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async usage(): Promise<Usage> {
    this.#child?.send('usage');
    const [usage] = await once(this.#child ?? process, 'message');
    return usage as Usage; // what `service-process.mjs` sends
  }

  /** Adds accounts with a home of their own. Returns a token of each. */
  async addAccounts(count: number): Promise<readonly string[]> {
    this.#child?.send({ accounts: count });
    const [tokens] = await once(this.#child ?? process, 'message');
    return tokens as readonly string[]; // what `service-process.mjs` sends
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (!child || !this.isRunning) return;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  }

  async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.end(signal);
    await this.start();
  }
}
