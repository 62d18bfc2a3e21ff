import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../util/clock.ts';
import type { LogFields } from '../util/log.ts';
import type { FromThread, ThreadOptions } from './embedded.ts';
import { startService } from './server.ts';

/** The service's own thread: see `embedded.ts`, which starts it and talks to it. */
async function main(): Promise<void> {
  const port = parentPort;
  if (!port) throw new Error('this file runs only as a worker thread');
  const post = (message: FromThread) => port.postMessage(message);
  const logAs = (level: 'info' | 'warn' | 'error') => (event: string, fields?: LogFields) =>
    post({ kind: 'log', level, event, fields });
  const log = { info: logAs('info'), warn: logAs('warn'), error: logAs('error') };
  const { dataDirectory } = workerData as ThreadOptions; // what `startEmbeddedService` hands in
  try {
    const listen = { host: '127.0.0.1', port: 0 };
    const service = await startService({ dataDirectory, listen, clock: systemClock, log });
    port.once('message', async () => {
      await service.close();
      // Without the port nothing keeps the thread alive.
      port.close();
    });
    post({ kind: 'started', url: service.url, credentials: await service.provision() });
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    post({ kind: 'failed', name, message });
    port.close();
  }
}

await main();
