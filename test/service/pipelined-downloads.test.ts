import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { Log } from '../../src/util/log.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectRaw } from '../support/raw-http.ts';
import { startTestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

const CONNECTIONS = 20;

test('pipelined downloads that nobody reads end with their connections, so that the service closes at once', async () => {
  const lines: string[] = [];
  const note = (event: string) => void lines.push(event);
  const log: Log = { info: note, warn: note, error: note };
  // The clock does not advance, so that the grace time for running requests never ends.
  const service = await startTestService({ clock: new ManualClock(), log });
  await put(service, '/big', Buffer.alloc(12 * 1024 * 1024, 7));
  const download = [
    'POST /2/files/download HTTP/1.1',
    'Host: service',
    `Authorization: Bearer ${service.token}`,
    `Dropbox-API-Arg: ${JSON.stringify({ path: '/big' })}`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n');
  const port = Number(new URL(service.url).port);
  const connections = Array.from({ length: CONNECTIONS }, () => connectRaw(port, download.repeat(3)));
  for (const { socket } of connections) socket.pause();
  await Promise.all(connections.map(({ socket }) => once(socket, 'readable')));
  for (const { socket } of connections) socket.destroy();
  await service.close();
  expect(lines).toEqual([]);
});
