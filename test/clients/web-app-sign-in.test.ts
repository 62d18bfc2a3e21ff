import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { combinations } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { Gate } from '../support/gate.ts';
import { PASSWORD } from '../support/program.ts';

// Signing in to the web application, and out again.

// A configured password takes its time to check, as the tests with many guesses need.
const drive = driveInBrowser(async () => ['--password', PASSWORD]);
const page = () => drive.page;
const shown = () => page().locator('footer.page .count').getByText(/\d/).waitFor();
const title = () => page().locator('h1').innerText();

/** Opens the folder in a browser that is not signed in. */
async function openSignedOut(options: Parameters<typeof drive.use>[0] = {}): Promise<void> {
  await drive.use(options, { isSignedIn: false });
  await page().goto(drive.addressOf(''));
}

async function fillIn(password: string, user = drive.program.user): Promise<void> {
  await page().getByLabel('User name').fill(user);
  await page().getByLabel('Password', { exact: true }).fill(password);
  await page().keyboard.press('Enter');
}

/** Ends the session of the page at the gateway, as another window does when it signs out. */
async function endSession(): Promise<void> {
  const answer = await page().request.post(new URL('/.davgate/sign-out', drive.program.url).href, {
    headers: { 'x-csrf-token': await csrfToken() },
  });
  expect(answer.status()).toBe(204);
}

async function csrfToken(): Promise<string> {
  const answer = await page().request.get(new URL('/.davgate/api/drive', drive.program.url).href);
  return (await answer.json()).csrfToken;
}

const again = () => page().getByRole('dialog', { name: 'Sign in again' });

async function signInAgain(password = drive.program.password): Promise<void> {
  await again().getByLabel('Password').fill(password);
  await again().getByRole('button', { name: 'Sign in' }).click();
}

test('a user signs in on a page and not in a dialog of the browser, and reaches the folder that was opened', async () => {
  await drive.put('a.txt');
  await openSignedOut();
  await expectSoon(title).toBe('Sign in');
  await fillIn(drive.program.password);
  await shown();
  expect(page().url()).toBe(drive.addressOf(''));
  await expectSoon(() => drive.names()).toEqual(['a.txt']);
  await page().getByText('Signed in as tester').waitFor();
  await page().reload();
  await shown();
});

test('a wrong password shows a message and keeps the name, and the right one then signs in', async () => {
  await openSignedOut();
  await fillIn('wrong');
  await expectSoon(() => page().getByRole('alert').innerText()).toBe(
    'That user name and password do not belong together. Check both and try again.',
  );
  await expectSoon(() => page().getByLabel('User name').inputValue()).toBe('tester');
  await expectSoon(() => page().evaluate('document.activeElement.id')).toBe('password');
  await page().keyboard.type(drive.program.password);
  await page().keyboard.press('Enter');
  await shown();
  expect(page().url()).toBe(drive.addressOf(''));
});

test('after wrong passwords the page says in German how long to wait', async () => {
  await openSignedOut({ locale: 'de-DE' });
  await expectSoon(title).toBe('Anmelden');
  // Guesses that are under way keep their client waiting, however slow this machine is.
  const over = new AbortController();
  const guesses = Array.from({ length: 12 }, (_, index) => {
    const authorization = `Basic ${Buffer.from(`nobody:${index}`).toString('base64')}`;
    return fetch(drive.addressOf(''), { headers: { authorization }, signal: over.signal });
  });
  const ended = Promise.allSettled(guesses);
  let tries = 0;
  await expectSoon(async () => {
    await page().getByLabel('Benutzername').fill('nobody');
    await page().getByLabel('Passwort').fill(`guess ${++tries}`);
    const answered = page().waitForResponse((answer) => answer.request().method() === 'POST');
    await page().keyboard.press('Enter');
    await answered;
    return page().getByRole('alert').innerText();
  }).toMatch(/^Das waren zu viele falsche Passwörter\. Bitte in \d+ Sekunden noch einmal versuchen\.$/);
  over.abort();
  await ended;
});

test('signing out shows the sign-in page, ends the session at the gateway, and no window asks for a password', async () => {
  await drive.open();
  const [cookie] = await page().context().cookies();
  await drive.press('Sign out');
  await expectSoon(title).toBe('Sign in');
  const { status } = await fetch(drive.addressOf(''), {
    headers: { cookie: `${cookie?.name}=${cookie?.value}` },
  });
  expect(status).toBe(401);
  await page().goto(drive.addressOf(''));
  await expectSoon(title).toBe('Sign in');
});

test('a page that the browser has kept shows nothing after the session has ended', async () => {
  await drive.put('a.txt');
  await drive.open();
  await endSession();
  // What Chromium does on going back, which it does not do under a debugger.
  await page().evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))');
  await expectSoon(title).toBe('Sign in');
});

test('a text that is saved after the session has ended is stored once the user has signed in again', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await page().getByText('a.txt', { exact: true }).click();
  await drive.dialog().getByRole('button', { name: 'Edit' }).click();
  await page().getByRole('textbox', { name: 'Text', exact: true }).waitFor();
  await page().keyboard.type('new ');
  await endSession();
  await page().keyboard.press('Control+s');
  await again().waitFor();
  expect(await drive.textOf('a.txt')).toBe('old');
  await expectSoon(() => drive.violations()).toEqual([]);
  await signInAgain('wrong');
  await expectSoon(() => again().getByRole('alert').innerText()).toBe(
    'That is not the password. Please try again.',
  );
  await signInAgain();
  await expectSoon(() => drive.textOf('a.txt')).toBe('new old');
  await expectSoon(() => page().locator('.editor .state').innerText()).toBe('Saved');
  await expectSoon(() => again().count()).toBe(0);
});

test('a user who declines to sign in again keeps the text, and is asked at the next save', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await page().getByText('a.txt', { exact: true }).click();
  await drive.dialog().getByRole('button', { name: 'Edit' }).click();
  await page().getByRole('textbox', { name: 'Text', exact: true }).waitFor();
  await page().keyboard.type('new ');
  await endSession();
  await page().keyboard.press('Control+s');
  await again().getByRole('button', { name: 'Not now' }).click();
  await expectSoon(() => page().getByRole('alert').innerText()).toBe(
    'Not saved: You are no longer signed in.',
  );
  await page().keyboard.press('Control+s');
  await signInAgain();
  await expectSoon(() => drive.textOf('a.txt')).toBe('new old');
});

test('files that are uploaded after the session has ended are stored once the user has signed in again', async () => {
  await drive.open();
  await endSession();
  await drive.upload({ name: 'one.txt', text: '1' }, { name: 'two.txt', text: '2' });
  await signInAgain();
  await expectSoon(() => drive.names()).toEqual(['one.txt', 'two.txt']);
  expect(await drive.textOf('two.txt')).toBe('2');
});

test('a page whose session was replaced in another window goes on without asking', async () => {
  await drive.open();
  await drive.press('New folder');
  const other = await page().context().newPage();
  await other.goto(new URL('/.davgate/sign-in', drive.program.url).href);
  await endSession();
  await other.goto(drive.addressOf(''));
  await other.getByLabel('User name').fill(drive.program.user);
  await other.getByLabel('Password', { exact: true }).fill(drive.program.password);
  await other.keyboard.press('Enter');
  await other.locator('footer.page .count').getByText(/\d/).waitFor();
  await drive.dialog().getByLabel('Name of the new folder').fill('made');
  await page().keyboard.press('Enter');
  await expectSoon(() => drive.names()).toEqual(['made']);
});

test('a page whose session ended before it knew the drive knows it after the next sign-in', async () => {
  const gate = new Gate();
  await page().route('**/.davgate/api/drive', async (route) => {
    await gate.pass();
    await route.continue();
  });
  await page().goto(drive.addressOf(''));
  await gate.reached;
  await endSession();
  gate.open();
  await page().getByText('This folder is empty.').waitFor();
  await expectSoon(() => page().getByText('Signed in as').count()).toBe(0);
  // What makes the page list the folder again.
  await page().evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await again().getByLabel('User name').fill(drive.program.user);
  await signInAgain();
  await page().getByText('Signed in as tester').waitFor();
});

test('a download of an archive after the session has ended begins once the user has signed in again', async () => {
  await drive.put('a.txt');
  await drive.put('b.txt');
  await drive.open();
  await page().keyboard.press('Control+a');
  await endSession();
  const download = page().waitForEvent('download');
  await drive.press('Download');
  await signInAgain();
  expect((await download).suggestedFilename()).toBe(`${drive.folder}.zip`);
});

test('a signed-in user who follows a link of another site reaches the drive', async () => {
  await drive.put('a.txt');
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<a href="${drive.addressOf('')}">drive</a>`);
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void site.close());
  await page().goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
  await page().getByText('drive').click();
  await expectSoon(() => drive.names()).toEqual(['a.txt']);
  expect(page().url()).toBe(drive.addressOf(''));
});

test.each(
  combinations([
    [390, 'light'],
    [390, 'dark'],
    [1280, 'light'],
    [1280, 'dark'],
  ] as const),
)('the sign-in page fits into %i px in %s, and axe finds no violation', async (width, colorScheme) => {
  await openSignedOut({ viewport: { width, height: 700 }, colorScheme });
  await fillIn('wrong');
  await page().getByRole('alert').waitFor();
  await expectSoon(() => page().evaluate('document.documentElement.scrollWidth')).toBe(width);
  await expectSoon(() => drive.violations()).toEqual([]);
});
