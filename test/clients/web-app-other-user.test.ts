import { beforeEach, expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { cheapHash } from '../support/program.ts';

// A page of one user, in whose browser another user signs in.

const drive = driveInBrowser({
  drives: { shared: {}, bobs: {} },
  users: [
    { name: 'tester', 'password-hash': cheapHash('pass word:1'), drive: 'shared' },
    { name: 'bob', 'password-hash': cheapHash('b'), drive: 'bobs' },
  ],
});
const BOB = { user: 'bob', password: 'b' };
const page = () => drive.page;
const again = () => page().getByRole('dialog', { name: 'Sign in again' });

beforeEach(async () => {
  // A folder of the same name, so that a request for the one would succeed for the other.
  expect((await asBob('MKCOL', '')).status).toBe(201);
});

const asBob = (method: string, name: string) =>
  fetch(drive.addressOf(name), { method, headers: { authorization: `Basic ${btoa('bob:b')}` } });

async function expectNothingAtBobs(...names: readonly string[]): Promise<void> {
  for (const name of names) expect((await asBob('GET', name)).status).toBe(404);
}

test('a folder that a page makes after another user has signed in is made in nobody else’s drive, however often it is tried', async () => {
  await drive.open();
  await drive.signIn(BOB);
  await drive.press('New folder');
  await drive.dialog().getByLabel('Name of the new folder').fill('made');
  await page().keyboard.press('Enter');
  await again().getByRole('button', { name: 'Not now' }).click();
  await page().getByText('You are no longer signed in.').first().waitFor();
  await drive.dialog().getByRole('button', { name: 'Create' }).click();
  await again().getByLabel('Password').fill(drive.program.password);
  await again().getByRole('button', { name: 'Sign in' }).click();
  await expectSoon(() => drive.names()).toEqual(['made']);
  await expectNothingAtBobs('made');
});

test('files that wait for their turn while another user signs in are not sent to the other user’s drive', async () => {
  const names = Array.from({ length: 7 }, (_, index) => `${index}.txt`);
  await drive.open();
  await drive.signIn(BOB);
  await drive.upload(...names.map((name) => ({ name, text: name })));
  await expectSoon(async () => {
    const notNow = again().getByRole('button', { name: 'Not now' });
    if ((await notNow.count()) > 0) await notNow.click();
    return page().getByText('0 uploaded, 7 failed').count();
  }).toBe(1);
  await expectNothingAtBobs(...names);
  expect(await drive.names()).toEqual([]);
});
