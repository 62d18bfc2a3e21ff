import { get, type IncomingMessage } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

/** Starts a download. Returns its response, unread. */
function open(path: string, range?: string): Promise<IncomingMessage> {
  const url = `${service.url}/2/files/download?arg=${encodeURIComponent(JSON.stringify({ path }))}`;
  const headers = { authorization: `Bearer ${service.token}`, ...(range && { range }) };
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, resolve).on('error', reject);
  });
}

async function rest(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('parallel downloads, some paused and some abandoned, each have their own bytes', async () => {
  const files = Array.from({ length: 4 }, (_, seed) => pseudoRandomBytes(2 * BLOCK_BYTES + 777, seed + 1));
  for (const [index, bytes] of files.entries()) await put(service, `/file-${index}`, bytes);
  // These are not read yet. Their bytes must stay unchanged while other downloads reuse the service's buffers.
  const heldUp = await Promise.all(files.map((_, index) => open(`/file-${index}`)));
  for (let round = 0; round < 5; round++) {
    const given = await open(`/file-${round % 4}`);
    given.once('data', () => given.destroy());
    const parts = files.map((_, index) =>
      open(`/file-${index}`, `bytes=${BLOCK_BYTES - 10}-${BLOCK_BYTES + 9}`),
    );
    for (const [index, part] of (await Promise.all(parts)).entries())
      expect(
        (await rest(part)).equals(
          files[index]?.subarray(BLOCK_BYTES - 10, BLOCK_BYTES + 10) ?? Buffer.alloc(0),
        ),
      ).toBe(true);
    const whole = await Promise.all(files.map(async (_, index) => rest(await open(`/file-${index}`))));
    for (const [index, bytes] of whole.entries())
      expect(bytes.equals(files[index] ?? Buffer.alloc(0))).toBe(true);
  }
  for (const [index, answer] of heldUp.entries())
    expect((await rest(answer)).equals(files[index] ?? Buffer.alloc(0))).toBe(true);
});
