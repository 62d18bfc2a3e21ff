import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { combinations } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/program.ts';

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="#7a0019"/></svg>';

const home = await temporaryDirectory();
afterAll(() => home.remove());

const drive = driveInBrowser(async () => {
  const logo = join(home.path, 'logo.svg');
  await writeFile(logo, LOGO);
  return ['--brand-name', 'Choir & Friends', '--brand-logo', logo, '--brand-colour', '#7a0019'];
});

const logoWidth = () => drive.page.evaluate<number>("document.querySelector('.card img').naturalWidth");

/** Returns the title, the icon and the colour of the main button. */
const look = async () => [
  await drive.page.title(),
  await drive.page.locator('link[rel=icon]').getAttribute('href'),
  await drive.page.evaluate<string>(
    "getComputedStyle(document.querySelector('.button.primary')).backgroundColor",
  ),
];

test.each(
  combinations([
    [390, 'light', 'rgb(122, 0, 25)'],
    [1280, 'dark', 'rgb(196, 143, 154)'],
  ] as const),
)(
  'at %i px in %s the sign-in page and the drive have the name, the logo and the colour of the settings',
  async (width, colorScheme, accent) => {
    await drive.put('a.txt');
    await drive.use({ viewport: { width, height: 800 }, colorScheme }, { isSignedIn: false });
    const { page } = drive;
    const icon = `data:image/svg+xml;base64,${Buffer.from(LOGO).toString('base64')}`;
    await page.goto(drive.addressOf(''));
    await expectSoon(() => page.locator('.card .brand').innerText()).toBe('Choir & Friends');
    await expectSoon(logoWidth).toBeGreaterThan(0);
    await expectSoon(look).toEqual(['Sign in – Choir & Friends', icon, accent]);
    expect(await drive.violations()).toEqual([]);
    await page.getByLabel('User name').fill(drive.program.user);
    await page.getByLabel('Password').fill(drive.program.password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.locator('footer.page .count').getByText(/\d/).waitFor();
    await page.getByRole('link', { name: 'Choir & Friends' }).click();
    await page.getByRole('heading', { name: 'Choir & Friends' }).waitFor();
    await expectSoon(look).toEqual(['Choir & Friends', icon, accent]);
    expect(await drive.violations()).toEqual([]);
  },
);
