import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavAnswer, type DavServer, startDav } from '../../../support/dav.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/f/x', 'x');
});
afterEach(() => dav.close());

const sharedLock = (owner: string) =>
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype>' +
  `<D:owner>${owner}</D:owner></D:lockinfo>`;

const share = (owner: string, count: number) =>
  Promise.all(
    Array.from({ length: count }, () =>
      dav.send('LOCK', '/f', {
        body: sharedLock(owner),
        headers: { Depth: 'infinity' },
      }),
    ),
  );
const statusesOf = (answers: readonly DavAnswer[]) => answers.map(({ status }) => status).sort();

test('LOCK refuses owners of 8 KB, so that PROPFIND of the folder does not grow', async () => {
  for (let row = 0; row < 200; row++) await dav.file(`/f/${row}`);
  const find = () => dav.send('PROPFIND', '/f', { headers: { Depth: '1' } });
  const before = (await find()).body.length;
  expect(statusesOf(await share('o'.repeat(8_000), 50))).toEqual(Array(50).fill(400));
  expect((await find()).body.length).toBe(before);
});

test('of 50 shared locks on a folder 32 are granted, and the others answer 507 with advice', async () => {
  const answers = await share('o'.repeat(900), 50);
  expect(statusesOf(answers)).toEqual([...Array(32).fill(200), ...Array(18).fill(507)]);
  expect(answers.find(({ status }) => status === 507)?.text).toContain('/f has 32 locks');
  for (const { body } of answers) expect(body.length).toBeLessThan(65 * 1024);
  const found = await dav.send('PROPFIND', '/f/x', { headers: { Depth: '0' } });
  expect(found.text.split('<D:activelock>')).toHaveLength(33);
});
