import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCeph } from '../support/ceph.ts';
import type { Daemons } from '../support/daemons.ts';
import { expectSoon } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startObjectStore, type TestObjectStore } from '../support/object-stores.ts';
import { requestObject, type S3Request } from '../support/signed-s3.ts';
import { startSwift } from '../support/swift.ts';

const CONTENT = randomBytes(100_000);

type Name = 'Ceph' | 'Swift';

/** A PUT with a wrong header, and the status and error code that each server answers. */
interface WrongPut {
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly answers: Readonly<Record<Name, string>>;
}

const OTHER = Buffer.from('other');

const WRONG_PUTS: readonly WrongPut[] = [
  {
    what: 'the Content-MD5 of another content',
    headers: { 'content-md5': hash('md5', OTHER, 'base64') },
    answers: { Ceph: '400 BadDigest', Swift: '400 BadDigest' },
  },
  {
    what: 'a malformed Content-MD5',
    headers: { 'content-md5': 'malformed' },
    answers: { Ceph: '400 InvalidDigest', Swift: '400 InvalidDigest' },
  },
  {
    what: 'the x-amz-content-sha256 of another content',
    headers: { 'x-amz-content-sha256': hash('sha256', OTHER, 'hex') },
    answers: { Ceph: '400 XAmzContentSHA256Mismatch', Swift: '400 BadDigest' },
  },
  {
    // Neither server knows this newer checksum, so that a client cannot rely on it.
    what: 'the x-amz-checksum-sha256 of another content',
    headers: { 'x-amz-checksum-sha256': hash('sha256', OTHER, 'base64') },
    answers: { Ceph: '200', Swift: '200' },
  },
];

const STORES = [
  { name: 'Ceph', startStore: startCeph },
  { name: 'Swift', startStore: startSwift },
] as const;

for (const { name, startStore } of STORES)
  describe(`the object store ${name}`, () => {
    let store: TestObjectStore;
    beforeAll(async () => {
      store = await startStore();
    });
    afterAll(() => store?.close());

    const send = (request: S3Request) => requestObject(store, request);
    const put = (key: string, body: Buffer, headers: Readonly<Record<string, string>> = {}) =>
      send({ method: 'PUT', key, body, headers });

    test(`${name} keeps an object, reads it whole and by range, and removes it`, async () => {
      const md5 = hash('md5', CONTENT, 'base64');
      expect((await put('one/object', CONTENT, { 'content-md5': md5 })).status).toBe(200);
      const whole = await send({ method: 'GET', key: 'one/object' });
      expect(whole.status).toBe(200);
      expect(whole.body.equals(CONTENT)).toBe(true);
      const part = await send({ method: 'GET', key: 'one/object', headers: { range: 'bytes=1000-1999' } });
      expect(part.status).toBe(206);
      expect(part.header('content-range')).toBe('bytes 1000-1999/100000');
      expect(part.body.equals(CONTENT.subarray(1000, 2000))).toBe(true);
      expect((await send({ method: 'DELETE', key: 'one/object' })).status).toBe(204);
      expect((await send({ method: 'GET', key: 'one/object' })).status).toBe(404);
    });

    test(`${name} lists the objects below a prefix in their order, over three pages`, async () => {
      const keys = Array.from({ length: 7 }, (_, index) => `listed/${index}`);
      for (const key of [...keys, 'beside/0']) await put(key, OTHER);
      const pages = await listPages(store, 'listed/', 3);
      expect(pages).toEqual([keys.slice(0, 3), keys.slice(3, 6), keys.slice(6)]);
    });

    for (const { what, headers, answers } of WRONG_PUTS) {
      const isStored = answers[name] === '200';
      const rest = isStored ? 'stores the object' : 'stores nothing';
      test(`${name} answers ${answers[name]} to a PUT with ${what}, and ${rest}`, async () => {
        await send({ method: 'DELETE', key: 'wrong' });
        const { status, text } = await put('wrong', CONTENT, headers);
        expect([status, ...textsOf(text(), 'Code')].join(' ')).toBe(answers[name]);
        expect((await send({ method: 'HEAD', key: 'wrong' })).status).toBe(isStored ? 200 : 404);
      });
    }

    test(`${name} answers 403 to a wrong secret`, async () => {
      const stranger = { ...store, secretKey: 'wrong' };
      const answer = await requestObject(stranger, { method: 'PUT', key: 'strange', body: OTHER });
      expect(answer.status).toBe(403);
      expect(textsOf(answer.text(), 'Code')).toEqual(['SignatureDoesNotMatch']);
      expect((await send({ method: 'HEAD', key: 'strange' })).status).toBe(404);
    });

    test(`${name} keeps its objects when it is killed and started again`, async () => {
      await put('kept', CONTENT);
      await store.stop();
      await expect(send({ method: 'GET', key: 'kept' })).rejects.toThrow();
      await store.start();
      const { status, body } = await send({ method: 'GET', key: 'kept' });
      expect(status).toBe(200);
      expect(body.equals(CONTENT)).toBe(true);
      expect(await listPages(store, 'kept', 10)).toEqual([['kept']]);
    });

    test(`${name} answers no request while it is paused, and again after it is resumed`, async () => {
      await put('late', CONTENT);
      store.pause();
      const request = fetch(store.url, { signal: AbortSignal.timeout(1000) });
      await expect(request).rejects.toThrow('timeout');
      store.resume();
      expect((await send({ method: 'GET', key: 'late' })).status).toBe(200);
    });
  });

test('an object store whose daemon ends at the start says what it wrote, and leaves no process and no file', async () => {
  let directory = '';
  const start = startObjectStore({
    ...{ name: 'failing', accessKey: 'none', front: 'sleep' },
    async prepare(made) {
      directory = made;
      return { launch };
    },
  });
  async function launch(daemons: Daemons): Promise<void> {
    daemons.start('sleep', ['1000']);
    await expectSoon(() => processesIn(directory)).toHaveLength(1);
    daemons.start('sh', ['-c', 'echo no space; exit 3']);
    await daemons.answer(await freePort());
  }
  await expect(start).rejects.toThrow('sh ended with 3:\nno space');
  expect(processesIn(directory)).toEqual([]);
  expect(existsSync(directory)).toBe(false);
});

/** Returns the keys of each page of a listing. */
async function listPages(store: TestObjectStore, prefix: string, size: number): Promise<string[][]> {
  const pages: string[][] = [];
  let token: string | undefined;
  do {
    const query = {
      ...{ 'list-type': '2', 'max-keys': String(size), prefix },
      ...(token && { 'continuation-token': token }),
    };
    const answer = await requestObject(store, { method: 'GET', query });
    expect(answer.status).toBe(200);
    pages.push(textsOf(answer.text(), 'Key'));
    [token] = textsOf(answer.text(), 'NextContinuationToken');
  } while (token);
  return pages;
}

/** Returns the ids of the processes whose working directory is this one, also if it is removed. */
function processesIn(directory: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(directory);
    } catch {
      return false; // not a process, or no longer
    }
  });
}

/** Returns the texts of the elements with this name. */
function textsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text = '']) => text);
}

function hash(kind: 'md5' | 'sha256', content: Buffer, encoding: 'base64' | 'hex'): string {
  return createHash(kind).update(content).digest(encoding);
}
