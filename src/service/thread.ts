import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../util/clock.ts';
import type { LogFields } from '../util/log.ts';
import { Networks } from '../util/networks.ts';
import type { FromThread, ThreadOptions, ToThread } from './embedded.ts';
import { type RunningService, startService } from './server.ts';

/** Runs the service in a thread of its own; `embedded.ts` starts this thread and talks to it. */
async function main(): Promise<void> {
  const port = parentPort;
  if (!port) throw new Error('this file runs only as a worker thread');
  const post = (message: FromThread) => port.postMessage(message);
  const logAs = (level: 'info' | 'warn' | 'error') => (event: string, fields?: LogFields) =>
    post({ kind: 'log', level, event, fields });
  const log = { info: logAs('info'), warn: logAs('warn'), error: logAs('error') };
  const { dataDirectory, drives, purpose } = workerData as ThreadOptions; // what `startEmbeddedService` hands in
  let service: RunningService | undefined;
  try {
    const listen = { host: '127.0.0.1', port: 0 };
    // Only the gateway connects; for visitors of links it sends their addresses.
    const trustedProxies = new Networks(['127.0.0.1']);
    const running = await startService({ dataDirectory, listen, trustedProxies, clock: systemClock, log });
    service = running;
    const tokens = await running.provisionDrives(drives, purpose);
    port.on('message', async (message: ToThread) => {
      if (message.kind === 'set-link-url') return running.setLinkUrl(message.url);
      await running.close();
      // The open port would keep the thread alive.
      port.close();
    });
    post({ kind: 'started', url: running.url, tokens });
  } catch (error) {
    await service?.close();
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    post({ kind: 'failed', name, message });
    port.close();
  }
}

await main();
