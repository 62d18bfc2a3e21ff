import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { queried } from '../support/postgres-server.ts';
import { runProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

let directory: { path: string; remove(): Promise<void> };
let postgres: TestPostgres;
let metadata: string;
let folder: string;
let services: readonly TestService[];

beforeAll(async () => {
  [directory, postgres] = await Promise.all([temporaryDirectory(), startPostgres()]);
  metadata = await postgres.newDatabase();
  folder = join(directory.path, 'blocks');
  services = [
    await startTestService({ metadata, blocks: { folder } }),
    await startTestService({ metadata, blocks: { folder } }),
  ];
});
afterAll(async () => {
  for (const service of services) await service.close();
  await postgres.close();
  await directory.remove();
});

const check = (...words: string[]) =>
  runProgram(['service', 'check', '--blocks', folder, ...words], {
    ...process.env,
    DAVGATE_METADATA: metadata,
  });

test('davgate service check beside services on PostgreSQL ends with 0, 1 and the path, or 2, and repairs with --repair', async () => {
  const [one] = services;
  if (!one) throw new Error('no service');
  await put(one, '/folder/photo.jpg', pseudoRandomBytes(100_000, 1));
  let isDone = false;
  const uploads = (async () => {
    for (let count = 0; !isDone; count++)
      await put(one, `/uploads/${count % 9}`, pseudoRandomBytes(70_000, count));
  })();
  const sound = await check();
  isDone = true;
  await uploads;
  expect([sound.code, sound.output]).toEqual([
    0,
    expect.stringMatching(/^No damage in the database and its blocks \(blocks: \d+, \d+\.\d [MG]B.*\)\.$/m),
  ]);

  await queried(metadata, 'UPDATE davgate.namespace SET used_bytes = used_bytes + 1 WHERE used_bytes > 0');
  const wrong = await check();
  expect([wrong.code, wrong.output]).toEqual([1, expect.stringContaining(':: its used space is wrong\n')]);
  const repaired = await check('--repair');
  expect([repaired.code, repaired.output]).toEqual([
    0,
    expect.stringMatching(
      /its used space is wrong \(repaired\)\n(checked .*\n)*Repaired: 1 line above\. No damage in/,
    ),
  ]);
  expect((await check()).code).toBe(0);

  const [tag = ''] = await readdir(folder);
  const rows = await queried<{ name: string }>(
    metadata,
    `SELECT block_name.name FROM davgate.revision JOIN davgate.content_block USING (ns, content)
     JOIN davgate.block_name USING (ns, block) WHERE path = '/folder/photo.jpg'`,
  );
  const file = join(folder, tag, 'blocks', rows[0]?.name ?? '');
  const bytes = await readFile(file);
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  await writeFile(file, bytes);
  const damaged = await check('--repair');
  expect([damaged.code, damaged.output]).toEqual([
    1,
    expect.stringContaining('/folder/photo.jpg (current, rev '),
  ]);
  expect(await readFile(file)).toEqual(bytes);

  const elsewhere = await runProgram(
    ['service', 'check', '--blocks', join(directory.path, 'none'), '--metadata', metadata],
    process.env,
  );
  expect([elsewhere.code, elsewhere.output]).toEqual([2, expect.stringContaining('mount it')]);
  expect((await runProgram(['service', 'check', '--metadata', metadata])).code).toBe(2);
});
