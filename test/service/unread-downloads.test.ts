import { createHash } from 'node:crypto';
import { get, type IncomingMessage } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { usedBytes } from '../support/memory-use.ts';
import { startTestService } from '../support/service.ts';
import { put, sharedLink } from '../support/service-client.ts';

/** Downloads at once. */
const COUNT = 40;

/** What a download may hold, in bytes: the block that is being sent, and a quarter of one for all the rest. */
const DOWNLOAD_BYTES_MAX = 1.25 * BLOCK_BYTES;

/** Bytes that a client reads before it stops: more than the headers, and less than the system keeps for it. */
const READ_BYTES = 100_000;

interface Download {
  readonly answer: IncomingMessage;
  /** Reads the rest. Returns the hash of all bytes. */
  readonly rest: () => Promise<string>;
}

/** Starts a download, and reads only the first bytes of it. */
async function open(url: string): Promise<Download> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false }, resolve).on('error', reject);
  });
  expect(answer.statusCode).toBe(200);
  const hash = createHash('sha256');
  const chunks = answer[Symbol.asyncIterator]();
  const readUpTo = async (bytesMax: number) => {
    for (let bytes = 0; bytes < bytesMax; ) {
      const { value, done } = await chunks.next();
      if (done) break;
      hash.update(value);
      bytes += value.length;
    }
  };
  await readUpTo(READ_BYTES);
  return {
    answer,
    rest: async () => {
      await readUpTo(Number.POSITIVE_INFINITY);
      return hash.digest('hex');
    },
  };
}

test.each([
  ['file', '/shared/file'],
  ['folder', '/shared'],
])(
  'downloads of a shared %s that are not read take one block of memory each, and their bytes stay right while others use the buffers',
  async (_, path) => {
    const service = await startTestService({ clock: new ManualClock() });
    onTestFinished(() => service.close());
    await put(service, '/shared/file', pseudoRandomBytes(4 * BLOCK_BYTES, 1));
    const url = (await sharedLink(service, path)).replace('dl=0', 'dl=1');
    const alone = await (await open(url)).rest();
    const before = await usedBytes();
    const downloads = await Promise.all(Array.from({ length: COUNT }, () => open(url)));
    expect((await usedBytes()) - before).toBeLessThan(COUNT * DOWNLOAD_BYTES_MAX);
    for (const { answer } of downloads.splice(0, COUNT / 4)) answer.destroy();
    expect(await (await open(url)).rest()).toBe(alone);
    const hashes = await Promise.all(downloads.map(({ rest }) => rest()));
    expect(new Set(hashes)).toEqual(new Set([alone]));
  },
);
