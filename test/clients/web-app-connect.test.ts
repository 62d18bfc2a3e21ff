import { describe, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { SCREENS } from '../support/screens.ts';

// How the web application tells to connect other programs to the drive.

const drive = driveInBrowser();
const page = () => drive.page;
const tab = (name: string) => drive.dialog().getByRole('tab', { name });
const panel = () => drive.dialog().getByRole('tabpanel');

/** Opens the dialog in a browser that names this platform. */
async function openConnect(platform: string, touchPoints = 0): Promise<void> {
  await page().addInitScript(
    `for (const [name, value] of [['platform', ${JSON.stringify(platform)}], ['maxTouchPoints', ${touchPoints}]])
      Object.defineProperty(Navigator.prototype, name, { get: () => value });`,
  );
  await drive.open();
  await page().getByText(`Signed in as ${drive.program.user}`).waitFor();
  await drive.press('Connect');
}

describe('the dialog about other programs', () => {
  test.each([
    ['Win32', 0, 'Windows', 'net use * '],
    ['MacIntel', 0, 'macOS', 'mount_webdav -i '],
    ['Linux x86_64', 0, 'Linux', 'sudo mount -t davfs -o uid=$USER '],
    ['Linux aarch64', 0, 'Linux', 'sudo mount -t davfs -o uid=$USER '],
    ['Linux armv81', 5, 'Android', 'Material Files'],
    ['iPhone', 5, 'iPhone, iPad', 'Owlfiles'],
    ['MacIntel', 5, 'iPhone, iPad', 'Owlfiles'],
  ])('a visitor with %s and %d touch points sees %s first', async (platform, touchPoints, name, text) => {
    await openConnect(platform, touchPoints);
    await expectSoon(() => drive.dialog().getByRole('tab').first().innerText()).toBe(name);
    await expectSoon(() => tab(name).getAttribute('aria-selected')).toBe('true');
    await expectSoon(() => panel().innerText()).toContain(text);
  });

  test('the commands have the address and the user, and never the password', async () => {
    await openConnect('Win32');
    const { url, user, password } = drive.program;
    await drive.dialog().getByText(`Log in as ${user}, with your password.`).waitFor();
    await expectSoon(() => panel().innerText()).toContain(`net use * ${url} /user:${user}`);
    await tab('Linux').click();
    await expectSoon(() => panel().innerText()).toContain(
      `url=${url} vendor=owncloud user=${user} pass=PASSWORD`,
    );
    await expectSoon(() => panel().innerText()).toContain(`gio mount ${url.replace('http', 'dav')}`);
    await expectSoon(() => page().content()).not.toContain(password);
  });

  test('the arrow keys go from one system to the next, around both ends', async () => {
    await openConnect('Win32');
    await tab('Windows').focus();
    await page().keyboard.press('ArrowLeft');
    await expectSoon(() => tab('iPhone, iPad').getAttribute('aria-selected')).toBe('true');
    await page().keyboard.press('ArrowRight');
    await page().keyboard.press('ArrowRight');
    await expectSoon(() => tab('macOS').getAttribute('aria-selected')).toBe('true');
    await expectSoon(() => page().evaluate('document.activeElement.textContent')).toBe('macOS');
    await expectSoon(() => panel().innerText()).toContain('Connect to Server');
  });

  test('the address is copied', async () => {
    await drive.use({ permissions: ['clipboard-read', 'clipboard-write'] });
    await openConnect('MacIntel');
    await drive.dialog().getByRole('button', { name: 'Copy' }).first().click();
    await drive.dialog().getByRole('button', { name: 'Copied' }).waitFor();
    await expectSoon(() => page().evaluate('navigator.clipboard.readText()')).toBe(drive.program.url);
  });

  test.each(SCREENS)(
    'at $width px in $colorScheme colours nothing is cut off, and axe finds no violation',
    async (look) => {
      await drive.resize(look);
      await openConnect('Win32');
      const overhang =
        "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth";
      for (const name of ['Windows', 'macOS', 'Linux', 'Android', 'iPhone, iPad']) {
        await tab(name).click();
        await expectSoon(() => tab(name).getAttribute('aria-selected')).toBe('true');
        await expectSoon(() => page().evaluate(overhang)).toBe(0);
        await expectSoon(() => drive.violations()).toEqual([]);
      }
    },
  );

  test('a German browser sees the steps in German', async () => {
    await drive.use({ locale: 'de-AT' });
    await drive.open();
    await drive.press('Verbinden');
    await tab('macOS').click();
    await expectSoon(() => panel().innerText()).toContain('Mit Server verbinden');
  });
});
