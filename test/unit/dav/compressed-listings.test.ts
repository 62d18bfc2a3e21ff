import { afterAll, beforeAll, expect, test } from 'vitest';
import { Networks } from '../../../src/util/networks.ts';
import { type DavServer, startDav } from '../../support/dav.ts';

const ELSEWHERE = { 'X-Forwarded-For': '192.0.2.7' };
const FILES_OF_FOLDER = 40;

let server: DavServer;
beforeAll(async () => {
  server = await startDav({ trustedProxies: new Networks(['127.0.0.1']) });
  for (let folder = 0; folder < FILES_OF_FOLDER; folder++)
    for (let file = 0; file < FILES_OF_FOLDER; file++)
      await server.file(`/folder ${folder}/file ${file}.txt`, 'x');
});
afterAll(() => server.close());

/** Sends PROPFIND as `fetch` does, which decompresses the answer. */
async function listing(target: string, depth: string, headers: Record<string, string>) {
  const answer = await fetch(server.url + target, {
    method: 'PROPFIND',
    headers: { Depth: depth, ...headers },
  });
  const text = await answer.text();
  return {
    text,
    coding: answer.headers.get('content-encoding'),
    sentBytes: Number(answer.headers.get('content-length') ?? Number.NaN),
  };
}

const CODINGS = [
  ['gzip', 'gzip'],
  ['gzip, deflate, br', 'br'],
  ['gzip, br;q=0', 'gzip'],
  ['*', 'br'],
] as const;

test.each(CODINGS)(
  'a client elsewhere with Accept-Encoding: %s gets a listing compressed as %s, at the first and at the second time',
  async (accepted, coding) => {
    for (const time of ['first', 'second']) {
      const plain = await listing('/folder%201/', '1', { ...ELSEWHERE, 'Accept-Encoding': 'identity' });
      const compressed = await listing('/folder%201/', '1', { ...ELSEWHERE, 'Accept-Encoding': accepted });
      expect([plain.coding, compressed.coding], time).toEqual([null, coding]);
      expect(compressed.text).toBe(plain.text);
      expect(compressed.sentBytes * 5).toBeLessThan(plain.sentBytes);
    }
  },
);

test.each(['gzip', 'br'])('a listing that is streamed is compressed as %s too', async (coding) => {
  const plain = await listing('/', 'infinity', { ...ELSEWHERE, 'Accept-Encoding': 'identity' });
  const compressed = await listing('/', 'infinity', { ...ELSEWHERE, 'Accept-Encoding': coding });
  expect([plain.coding, compressed.coding]).toEqual([null, coding]);
  // Neither has a length: both are streamed.
  expect([plain.sentBytes, compressed.sentBytes]).toEqual([Number.NaN, Number.NaN]);
  expect(compressed.text).toBe(plain.text);
  expect(plain.text.match(/<D:response>/g)).toHaveLength(1 + FILES_OF_FOLDER + FILES_OF_FOLDER ** 2);
});

test.each([
  ['that is on the same machine', '1', { 'Accept-Encoding': 'gzip' }],
  ['that takes another coding', '1', { ...ELSEWHERE, 'Accept-Encoding': 'zstd' }],
  ['that refuses gzip by its weight', '1', { ...ELSEWHERE, 'Accept-Encoding': 'deflate, gzip;q=0' }],
  ['for one file', '0', { ...ELSEWHERE, 'Accept-Encoding': 'gzip' }],
])('the answer to a client %s is not compressed', async (_, depth, headers) => {
  const target = depth === '1' ? '/folder%201/' : '/folder%201/file%201.txt';
  expect(await listing(target, depth, headers)).toMatchObject({ coding: null });
});
