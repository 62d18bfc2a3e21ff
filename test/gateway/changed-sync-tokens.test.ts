import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseReport, sendReport } from '../support/follower.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

// Sync tokens that a client has changed.

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;
let token: string;

beforeAll(async () => {
  service = await startTestService();
  await put(service, '/docs/sub/b.txt', 'b');
  gateway = await startTestGateway({ service });
  client = new GatewayClient(gateway.url);
  token = (await parseReport(await sendReport(client, '/docs', ''))).token;
});
afterAll(async () => {
  client.close();
  await gateway.close();
  await service.close();
});

/** Returns the token with another value in one of its fields. */
function changed(field: number, value: unknown): string {
  const start = token.lastIndexOf('/') + 1;
  const fields = JSON.parse(inflateRawSync(Buffer.from(token.slice(start), 'base64url')).toString());
  fields[field] = value;
  return token.slice(0, start) + deflateRawSync(JSON.stringify(fields)).toString('base64url');
}

const AGAIN = 5;

test.each([
  ['folders to be reported again', AGAIN, Array(100_000).fill('sub')],
  ['folders of the next report', 3, [null, '', Array(100_000).fill('sub')]],
  ['entries', 4, Array.from({ length: 100_000 }, (_, index) => [`z${index}`, 'x'])],
])('a token with more %s than davgate writes answers 403 valid-sync-token', async (_, field, value) => {
  const { status, body } = await sendReport(client, '/docs', changed(field, value));
  expect([status, body.toString()]).toEqual([403, expect.stringContaining('<D:valid-sync-token/>')]);
});

test('a token that names a folder and what it contains a thousand times reports each member once', async () => {
  const again = Array.from({ length: 1000 }, (_, index) => (index % 2 === 0 ? 'sub' : 'sub/b.txt'));
  const { rows } = await parseReport(await sendReport(client, '/docs', changed(AGAIN, again)));
  expect(rows.map(([href]) => href)).toEqual(['/docs/sub/', '/docs/sub/b.txt']);
});
