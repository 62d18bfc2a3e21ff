import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { type MemoryBucket, startMemoryBucket } from '../../support/memory-bucket.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { download, put, rpc, upload } from '../../support/service-client.ts';
import { found, foundIn, sharedChecks } from './checked.ts';

const checked = sharedChecks();

const WORKERS = 3;
const CHECKS = 4;

/** Small and large contents, few of them, so that workers need again what others remove. */
const CONTENTS = [10, 5000, 66_000, 70_000, 200_000].map((bytes) => pseudoRandomBytes(bytes, bytes));

/** Changes files until `isDone`: each call is one that clients make, and each may be refused. */
async function work(service: TestService, folder: string, isDone: () => boolean): Promise<number> {
  let calls = 0;
  for (let step = 0; !isDone(); step++) {
    const content = CONTENTS[step % CONTENTS.length] ?? Buffer.alloc(0);
    const path = `${folder}/${step % 7}`;
    const commit = { path, mode: 'overwrite' };
    await upload(service, 'files/upload', commit, { body: content });
    await upload(service, 'files/upload_session/start', {}, { body: content });
    if (step % 3 === 0) await rpc(service, 'files/delete_v2', { path });
    if (step % 3 === 1)
      await rpc(service, 'files/copy_v2', {
        from_path: path,
        to_path: `/both/${step % 5}`,
        autorename: true,
      });
    if (step % 3 === 2) await rpc(service, 'files/permanently_delete', { path });
    if (step % 5 === 4)
      await rpc(service, 'files/move_v2', { from_path: '/both', to_path: `${folder}/b${step}` });
    calls += 3;
  }
  return calls;
}

test.each([false, true])(
  'a check beside two services that upload, copy, move and delete tells of nothing (repair: %s)',
  async (repairs) => {
    const data = await checked();
    const one = await data.start();
    const other = { ...(await data.start()), token: one.token };
    let isDone = false;
    const workers = Array.from({ length: WORKERS }, (_, index) =>
      work(index % 2 === 0 ? one : other, `/w${index}`, () => isDone),
    );
    try {
      for (let count = 0; count < CHECKS; count++) expect(await foundIn(data, { repairs })).toEqual([]);
    } finally {
      isDone = true;
      for (const calls of await Promise.all(workers)) expect(calls).toBeGreaterThan(0);
    }
    expect(await foundIn(data)).toEqual([]);
    expect((await download(other, '/small.txt')).text).toBe('small');
  },
);

test('a check needs no right but to read', async () => {
  const data = await checked();
  const reader = `reader_${createHash('sha256').update(data.metadata).digest('hex').slice(0, 12)}`;
  await data.administer(`CREATE ROLE ${reader} LOGIN PASSWORD 'read-only'`);
  await data.sql(`GRANT USAGE ON SCHEMA davgate TO ${reader};
    GRANT SELECT ON ALL TABLES IN SCHEMA davgate TO ${reader}`);
  const url = new URL(data.metadata);
  url.username = reader;
  url.password = 'read-only';
  expect(await foundIn({ ...data, metadata: url.href })).toEqual([]);
  await data.sql(`UPDATE davgate.namespace SET used_bytes = 1`);
  expect(await foundIn({ ...data, metadata: url.href })).toEqual([`${data.email}:: its used space is wrong`]);
});

test('a check of a database that is away, or refuses the user, fails with what to do', async () => {
  const data = await checked();
  const url = new URL(data.metadata);
  url.password = 'wrong';
  await expect(foundIn({ ...data, metadata: url.href })).rejects.toThrow(/refuses the user or the password/);
});

/** Starts a service with its blocks in a bucket, and uploads two files. */
async function inBucket() {
  const bucket: MemoryBucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const { metadata, sql } = await checked.withoutService();
  const service = await startTestService({ metadata, blocks: bucket.access });
  onTestFinished(() => service.close());
  await put(service, '/large', pseudoRandomBytes(100_000, 5));
  await put(service, '/small', 'text');
  return {
    bucket,
    metadata,
    sql,
    check: (repairs = false) => found({ metadata, blocks: bucket.access, repairs }),
  };
}

test('a check of blocks in a bucket tells of a missing and a changed object by path, and changes no object', async () => {
  const { bucket, check } = await inBucket();
  const before = new Map(bucket.objects);
  expect(await check()).toEqual([]);
  expect(bucket.objects).toEqual(before);
  const [key = ''] = [...bucket.objects.keys()].filter((one) => /[0-9a-f]{64}-/.test(one));
  bucket.objects.set(key, pseudoRandomBytes(100_000, 6));
  expect(await check()).toEqual([expect.stringMatching(/:\/large \(current, .*: its bytes have changed$/)]);
  bucket.objects.delete(key);
  expect(await check()).toEqual([expect.stringMatching(/:\/large \(current, .*: its object is missing$/)]);
});

test('a repair removes an object that has belonged to nothing for long, from several pages of keys', async () => {
  const { bucket, check, sql } = await inBucket();
  const [key = ''] = [...bucket.objects.keys()].filter((one) => /[0-9a-f]{64}-/.test(one));
  const folder = key.slice(0, key.lastIndexOf('/') + 1);
  const names = Array.from({ length: 5 }, (_, index) => `${String(index).repeat(64)}-0123456789abcdef`);
  for (const name of names) bucket.objects.set(`${folder}${name}`, Buffer.from('lost'));
  await sql(`INSERT INTO davgate.condemned_block SELECT name, now() - interval '9 days'
    FROM unnest(ARRAY['${names.slice(1).join("', '")}']) AS name`);
  expect(await check()).toHaveLength(4);
  expect(await check(true)).toEqual(['4 stored blocks belong to no file and no upload (repaired)']);
  expect(await check()).toEqual([]);
  expect([...bucket.objects.keys()]).toContain(`${folder}${names[0]}`);
  expect(bucket.objects.has(`${folder}${names[1]}`)).toBe(false);
});

test('a check with the bucket of another service is refused, and puts nothing there', async () => {
  const { metadata } = await inBucket();
  const other = await startMemoryBucket();
  onTestFinished(() => other.close());
  await expect(found({ metadata, blocks: other.access })).rejects.toThrow(
    /does not have the blocks of this service/,
  );
  expect(other.objects.size).toBe(0);
});
