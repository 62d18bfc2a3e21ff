import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Log, LogFields } from '../util/log.ts';
import { programUrl } from '../util/package.ts';
import type { DrivePurpose, EmbeddedDrive } from './accounts/drive-accounts.ts';

/** The service, running in a thread of its own: its address and a login for each drive. */
export interface EmbeddedService {
  readonly url: string;
  /** Access tokens by drive name. */
  readonly tokens: ReadonlyMap<string, string>;
  /** Sets the start of shared links: the gateway forwards requests below `url` to the service. */
  setLinkUrl(url: string): void;
  close(): Promise<void>;
}

export interface ThreadOptions {
  readonly dataDirectory: string;
  readonly drives: readonly EmbeddedDrive[];
  readonly purpose: DrivePurpose;
}

/**
 * Limit of the thread's young generation, in MB. With V8's default of 48 MB, short-lived buffers would stay until that
 * much is filled.
 */
const NEW_OBJECTS_MB = 6;

/** Messages to the thread; the first is `start`. */
export type ToThread =
  | { readonly kind: 'start'; readonly options: ThreadOptions }
  | { readonly kind: 'set-link-url'; readonly url: string }
  | { readonly kind: 'close' };

/** Messages from the thread. An error is sent with its name, because messages lose its class. */
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

/** A thread that loads the service's modules, and opens nothing before it is started. */
export interface ServiceThread {
  /** Starts the service on a free loopback port. Call it once. Throws `EmbeddedServiceFailure`. */
  start(options: ThreadOptions, log: Log): Promise<EmbeddedService>;
}

/** Starts the service in a thread of its own, so that flushing to disk and hashing never delay the gateway. */
export function startEmbeddedService(options: ThreadOptions, log: Log): Promise<EmbeddedService> {
  return loadServiceThread().start(options, log);
}

/** Begins to load the service's thread; meanwhile the gateway loads its own modules. */
export function loadServiceThread(): ServiceThread {
  const resourceLimits = { maxYoungGenerationSizeMb: NEW_OBJECTS_MB };
  const worker = new Worker(programUrl('service/thread.js'), { resourceLimits });
  const broken = new Promise<never>((_, reject) => {
    worker.once('error', reject);
  });
  // Reported by `start`.
  broken.catch(() => {});
  return { start: (options, log) => start(worker, broken, options, log) };
}

async function start(
  worker: Worker,
  broken: Promise<never>,
  options: ThreadOptions,
  log: Log,
): Promise<EmbeddedService> {
  const exited = once(worker, 'exit');
  const send = (message: ToThread) => worker.postMessage(message);
  const answered = new Promise<Extract<FromThread, { kind: 'started' }>>((resolve, reject) => {
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'log') log[message.level](message.event, message.fields);
      else if (message.kind === 'started') resolve(message);
      else reject(new EmbeddedServiceFailure(message.name, message.message));
    });
  });
  send({ kind: 'start', options });
  const started = await Promise.race([answered, broken]);
  // An error in the thread after the start is a defect. The gateway cannot work without its service, and a restart
  // finds everything that was acknowledged, so the process ends.
  worker.removeAllListeners('error');
  return {
    url: started.url,
    tokens: started.tokens,
    setLinkUrl: (url) => send({ kind: 'set-link-url', url }),
    async close() {
      send({ kind: 'close' });
      await exited;
    },
  };
}
