import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Log, LogFields } from '../util/log.ts';
import type { DrivePurpose, EmbeddedDrive } from './accounts/drive-accounts.ts';

/** The service in a thread of its own, as the gateway sees it: an address, and a login for each drive. */
export interface EmbeddedService {
  readonly url: string;
  /** Access tokens by the drives' names. */
  readonly tokens: ReadonlyMap<string, string>;
  /** From now on shared links lead below `url`, where the gateway passes requests on to the service. */
  leadLinksTo(url: string): void;
  close(): Promise<void>;
}

export interface ThreadOptions {
  readonly dataDirectory: string;
  readonly drives: readonly EmbeddedDrive[];
  readonly purpose: DrivePurpose;
}

/**
 * New objects of the thread, MB: three times what is collected at once. V8's own limit is 48, and short-lived
 * buffers wait for their collection as long as that takes to fill.
 */
const NEW_OBJECTS_MB = 6;

/** What the thread is told. */
export type ToThread = { readonly kind: 'close' } | { readonly kind: 'lead-links'; readonly url: string };

/** What the thread says. An error's class does not survive the way, its name does. */
export type FromThread =
  | { readonly kind: 'started'; readonly url: string; readonly tokens: ReadonlyMap<string, string> }
  | { readonly kind: 'failed'; readonly name: string; readonly message: string }
  | {
      readonly kind: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly event: string;
      readonly fields: LogFields | undefined;
    };

/** The service could not start; `reason` is the name of the error that says why. */
class EmbeddedServiceFailure extends Error {
  override readonly name = 'EmbeddedServiceFailure';

  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Starts the service on a free loopback port in a thread of its own, so that its flushes to disk and its hashing
 * never hold up the gateway. Throws `EmbeddedServiceFailure`.
 */
export async function startEmbeddedService(workerData: ThreadOptions, log: Log): Promise<EmbeddedService> {
  const resourceLimits = { maxYoungGenerationSizeMb: NEW_OBJECTS_MB };
  const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData, resourceLimits });
  const exited = once(worker, 'exit');
  const started = await new Promise<Extract<FromThread, { kind: 'started' }>>((resolve, reject) => {
    worker.on('error', reject);
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'log') log[message.level](message.event, message.fields);
      else if (message.kind === 'started') resolve(message);
      else reject(new EmbeddedServiceFailure(message.name, message.message));
    });
  });
  // From here on a fault in the thread is a defect: without its service the gateway is of no use, and a
  // restart finds everything that was acknowledged.
  worker.removeAllListeners('error');
  const tell = (message: ToThread) => worker.postMessage(message);
  return {
    url: started.url,
    tokens: started.tokens,
    leadLinksTo: (url) => tell({ kind: 'lead-links', url }),
    async close() {
      tell({ kind: 'close' });
      await exited;
    },
  };
}
