import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, put, send, sharedLink } from '../support/service-client.ts';

// Files of two accounts may have the same rev, because each namespace numbers its own changes.

const clock = new ManualClock();
let one: TestService;
let other: TestService;

beforeAll(async () => {
  one = await startTestService({ clock });
  const { id } = await one.service.addAccount({
    email: 'other@example.org',
    givenName: 'O',
    surname: 'T',
    mayDeletePermanently: false,
  });
  other = { ...one, token: await one.service.grant({ accountId: id, scopes: SCOPES }) };
});
afterAll(() => one.close());

async function putBoth(path: string, ofOne: Buffer | string, ofOther: Buffer | string): Promise<void> {
  // The number of a change is that of its time, or the next one.
  await clock.advance(60_000);
  const { rev } = await put(one, path, ofOne);
  expect(await put(other, path, ofOther)).toMatchObject({ rev });
}

const asked = ({ url, token }: TestService, name: string, argument: object) =>
  fetch(`${url}/2/files/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'dropbox-api-arg': headerJson(argument) },
  });

test('files of two accounts with the same rev have thumbnails of their own', async () => {
  const drawn = (width: number) =>
    sharp({ create: { width, height: 10, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
  await putBoth('/image.png', await drawn(20), await drawn(30));
  const widthOf = async (service: TestService) => {
    const answer = await asked(service, 'get_thumbnail', { path: '/image.png' });
    return (await sharp(Buffer.from(await answer.arrayBuffer())).metadata()).width;
  };
  expect(await widthOf(one)).toBe(20);
  expect(await widthOf(other)).toBe(30);
});

test('files of two accounts with the same rev have previews of their own', async () => {
  await putBoth('/table.csv', 'mine,1\n', 'theirs,2\n');
  const tableOf = async (service: TestService) =>
    (await asked(service, 'get_preview', { path: '/table.csv' })).text();
  expect(await tableOf(one)).toContain('<td>mine</td>');
  expect(await tableOf(other)).toContain('<td>theirs</td>');
});

test('link pages of files of two accounts with the same rev show each its own text', async () => {
  await putBoth('/notes.md', '# Mine', '# Theirs');
  const pageOf = async (service: TestService) =>
    (await send(await sharedLink(service, '/notes.md'), {})).text;
  expect(await pageOf(one)).toContain('Mine</h1>');
  expect(await pageOf(other)).toContain('Theirs</h1>');
});
