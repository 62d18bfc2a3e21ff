import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import { matchesOf } from '../../src/service/search/search.ts';
import { eventually } from '../support/eventually.ts';
import { connectRaw } from '../support/raw-http.ts';
import { startTestService } from '../support/service.ts';

vi.mock('../../src/service/search/search.ts', { spy: true });

/** A search that finds nothing and ends only with its signal. */
async function endless(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort');
  throw signal.reason;
}

test.each([
  ['files/search_v2', { query: 'note' }],
  ['files/search', { path: '', query: 'note' }],
])('%s ends its search when the client disconnects', async (name, argument) => {
  const service = await startTestService();
  const search = vi.mocked(matchesOf).mockClear();
  search.mockImplementation((_storage, _namespace, _search, signal) => endless(signal));
  const body = JSON.stringify(argument);
  const lines = [
    `POST /2/${name} HTTP/1.1`,
    'Host: service',
    `Authorization: Bearer ${service.token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const client = connectRaw(Number(new URL(service.url).port), `${lines.join('\r\n')}\r\n\r\n${body}`);
  await eventually(() => expect(search).toHaveBeenCalledOnce());
  client.socket.destroy();
  const ended = { type: 'rejected', value: expect.objectContaining({ name: 'ClientGone' }) };
  await eventually(() => expect(search.mock.settledResults).toEqual([ended]));
  await service.close();
});
