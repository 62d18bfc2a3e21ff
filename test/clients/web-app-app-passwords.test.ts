import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// App passwords in the web application.

const drive = driveInBrowser();
const page = () => drive.page;
const line = (name: string) => drive.dialog().getByRole('listitem').filter({ hasText: name });

async function statusWith(password: string): Promise<number> {
  const { url, user } = drive.program;
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return (await fetch(url, { headers: { authorization } })).status;
}

test('an app password is made, copied, used, listed, no longer shown, and ended', async () => {
  await drive.use({ permissions: ['clipboard-read', 'clipboard-write'] });
  await drive.open();
  await drive.press('App passwords');
  await drive.dialog().getByText('You have no app passwords.').waitFor();
  await drive.dialog().getByLabel('Name of the program or device').fill('Ann’s phone');
  await page().keyboard.press('Enter');
  await drive.dialog().getByText('it is shown only once').waitFor();
  await drive.dialog().getByRole('button', { name: 'Copy' }).click();
  await drive.dialog().getByRole('button', { name: 'Copied' }).waitFor();
  const password = String(await page().evaluate('navigator.clipboard.readText()'));
  await expectSoon(() => drive.dialog().locator('pre').innerText()).toBe(password);
  await line('Ann’s phone').getByText('never used').waitFor();
  expect(await statusWith(password)).toBe(200);

  await drive.dialog().getByRole('button', { name: 'Close' }).click();
  await drive.press('App passwords');
  await line('Ann’s phone').getByText('last used').waitFor();
  await expectSoon(() => page().content()).not.toContain(password);
  await drive.dialog().getByRole('button', { name: 'End the app password “Ann’s phone”' }).click();
  await page()
    .getByRole('dialog', { name: 'End “Ann’s phone”?' })
    .getByRole('button', { name: 'End' })
    .click();
  await drive.dialog().getByText('You have no app passwords.').waitFor();
  expect(await statusWith(password)).toBe(401);
});

test.each([
  { width: 390, locale: 'de-DE', colorScheme: 'dark' as const },
  { width: 1280, locale: 'en-GB', colorScheme: 'light' as const },
])('at $width px in $locale the app passwords are not cut off, and axe finds no violation', async (look) => {
  await drive.use({ ...look, viewport: { width: look.width, height: 800 } });
  await drive.open();
  const isGerman = look.locale === 'de-DE';
  await drive.press(isGerman ? 'App-Passwörter' : 'App passwords');
  await drive.dialog().getByRole('textbox').fill('x'.repeat(100));
  await page().keyboard.press('Enter');
  await drive
    .dialog()
    .getByText(isGerman ? 'nur einmal angezeigt' : 'shown only once')
    .waitFor();
  await line('xxx').first().waitFor();
  const overhang =
    "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth";
  await expectSoon(() => page().evaluate(overhang)).toBe(0);
  await expectSoon(() => drive.violations()).toEqual([]);
  await drive
    .dialog()
    .getByRole('button', { name: isGerman ? /^Das App-Passwort/ : /^End the app password/ })
    .first()
    .click();
  await page()
    .getByRole('dialog')
    .last()
    .getByText(isGerman ? 'nicht mehr anmelden' : 'can no longer log in')
    .waitFor();
  await expectSoon(() => drive.violations()).toEqual([]);
});
