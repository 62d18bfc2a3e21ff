import { type MessagePort, parentPort } from 'node:worker_threads';
import { systemClock } from '../util/clock.ts';
import type { LogFields } from '../util/log.ts';
import { Networks } from '../util/networks.ts';
import type { FromThread, ThreadOptions, ToThread } from './embedded.ts';
import { type RunningService, startService } from './server.ts';

/** The service in a thread of its own; `embedded.ts` starts this thread and talks to it. */
class ServiceThread {
  #service: RunningService | undefined;

  constructor(private readonly port: MessagePort) {}

  async handle(message: ToThread): Promise<void> {
    if (message.kind === 'start') return this.#start(message.options);
    if (message.kind === 'set-link-url') return this.#service?.setLinkUrl(message.url);
    await this.#service?.close();
    // The open port would keep the thread alive.
    this.port.close();
  }

  async #start({ dataDirectory, drives, purpose }: ThreadOptions): Promise<void> {
    const logAs = (level: 'info' | 'warn' | 'error') => (event: string, fields?: LogFields) =>
      this.#post({ kind: 'log', level, event, fields });
    const log = { info: logAs('info'), warn: logAs('warn'), error: logAs('error') };
    try {
      const listen = { host: '127.0.0.1', port: 0 };
      // Only the gateway connects; for visitors of links it sends their addresses.
      const trustedProxies = new Networks(['127.0.0.1']);
      const options = { dataDirectory, listen, trustedProxies, clock: systemClock, log };
      this.#service = await startService(options);
      const tokens = await this.#service.provisionDrives(drives, purpose);
      this.#post({ kind: 'started', url: this.#service.url, tokens });
    } catch (error) {
      await this.#service?.close();
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      this.#post({ kind: 'failed', name, message });
      this.port.close();
    }
  }

  #post(message: FromThread): void {
    this.port.postMessage(message);
  }
}

if (!parentPort) throw new Error('this file runs only as a worker thread');
const thread = new ServiceThread(parentPort);
parentPort.on('message', (message: ToThread) => thread.handle(message));
