import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseReport, sendReport } from '../support/follower.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

// Sync tokens that a client has changed: what they name would cost as much as it likes.

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

async function expectRefused(changed: string): Promise<void> {
  const { status, body } = await sendReport(client, '/docs', changed);
  expect([status, body.toString()]).toEqual([403, expect.stringContaining('<D:valid-sync-token/>')]);
}

test('a token with one other letter, wherever it is, answers 403 valid-sync-token', async () => {
  const start = token.lastIndexOf('/') + 1;
  // The last letter may have bits that are not used.
  for (let at = start; at < token.length - 1; at += 7) {
    const letter = token[at] === 'A' ? 'B' : 'A';
    await expectRefused(token.slice(0, at) + letter + token.slice(at + 1));
  }
});

test('a token shows a client nothing of what it contains', () => {
  const bytes = Buffer.from(token.slice(token.lastIndexOf('/') + 1), 'base64url');
  expect(() => inflateRawSync(bytes)).toThrow();
  expect(bytes.toString('latin1')).not.toContain('sub');
});

test('a token of an earlier version of davgate answers 403 valid-sync-token', async () => {
  const fields = JSON.stringify(['mark', '1', 'position', null, [], []]);
  await expectRefused(token.replace(/2\/[^/]*$/, deflateRawSync(fields).toString('base64url')));
});
