import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openRedirect, type Redirect } from '../../src/cli/login/redirect.ts';
import { addApp, addPerson } from '../support/consent.ts';
import { driveInBrowser } from '../support/drive-page.ts';
import { combinations } from '../support/effort.ts';
import { freePort } from '../support/free-port.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, sharedLink } from '../support/service-client.ts';

// All pages that davgate shows to people: they look alike, fit, and can be used by everybody.

const EMAIL = 'ann@example.org';
const PASSWORD = 'correct horse';

const drive = driveInBrowser();
const page = () => drive.page;
let service: TestService;
let consentAddress: string;
let redirect: Redirect | undefined;

beforeAll(async () => {
  service = await startTestService();
  await put(
    service,
    '/trip/a rather long name of a file that has to be broken on a small screen.txt',
    'text',
  );
  await put(
    service,
    '/trip/notes.md',
    '# Title\n\n[x](#title)\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |',
  );
  await put(service, '/trip/data.bin', Buffer.from([0, 1, 2, 0xff]));
  await addPerson(service, EMAIL, PASSWORD);
  const { app } = await addApp(service, { name: 'Photo Sorter' });
  consentAddress = `${service.url}/oauth2/authorize?${new URLSearchParams({ client_id: app.key, response_type: 'code' })}`;
});
afterEach(() => redirect?.close());
afterAll(() => service.close());

/** Opens each page, and calls `look` with its name. */
async function visitAll(look: (name: string) => Promise<void>): Promise<void> {
  const open = async (name: string, address: string) => {
    await page().goto(address);
    await look(name);
  };
  const button = (name: string) => page().getByRole('button', { name, exact: true });
  const link = await sharedLink(service, '/trip');
  await open('shared folder', link);
  await open('shared folder as a grid', `${link}&view=grid`);
  await page().getByRole('link', { name: 'notes.md' }).click();
  await look('shared document');
  await open('shared file without a preview', await sharedLink(service, '/trip/data.bin'));
  const locked = { requested_visibility: 'password', link_password: 'secret' };
  await open('link with a password', await sharedLink(service, '/trip/notes.md', locked));
  await page().getByLabel('Password').fill('wrong');
  await button('Open').click();
  await page().getByRole('alert').waitFor();
  await look('wrong password of a link');
  await open('missing link', `${service.url}/scl/fi/none`);
  await page().context().clearCookies();
  await open('sign-in of an account', consentAddress);
  await page().getByLabel('Email address').fill(EMAIL);
  await page().getByLabel('Password').fill(PASSWORD);
  await button('Sign in').click();
  await button('Allow').waitFor();
  await look('consent');
  await button('Allow').click();
  await page().getByRole('status').waitFor();
  await look('code');
  await open('invalid request of an app', `${service.url}/oauth2/authorize`);
  const uri = `http://127.0.0.1:${await freePort()}/`;
  redirect = await openRedirect(uri, 'state');
  await open('answer of a login', `${uri}?state=state&code=x`);
  await redirect.close();
  await open('sign-in', drive.addressOf(''));
  await page().getByLabel('User name').fill(drive.program.user);
  await page().getByLabel('Password').fill(drive.program.password);
  await button('Sign in').click();
  await page().locator('footer.page .count').getByText(/\d/).waitFor();
  await look('drive');
  await open('drive without scripts', drive.addressOf('?plain'));
}

/** The parts of the look that all pages have, as the browser computes them. */
const COMPUTED = `(() => {
  const of = (selector, ...names) => {
    const found = document.querySelector(selector);
    return found && Object.fromEntries(names.map((name) => [name, getComputedStyle(found)[name]]));
  };
  return {
    body: of('body', 'backgroundColor', 'color', 'fontFamily', 'fontSize', 'lineHeight'),
    button: of('.button.primary', 'backgroundColor', 'color', 'borderRadius', 'fontSize', 'fontWeight', 'minHeight'),
    card: of('.card', 'backgroundColor', 'borderTopColor'),
    field: of('.card input:not([type=hidden])', 'backgroundColor', 'borderRadius', 'fontSize', 'minHeight'),
  };
})()`;

type Computed = Readonly<Record<string, Readonly<Record<string, string>> | null>>;

test.each(
  combinations([
    [390, 'light'],
    [390, 'dark'],
    [1280, 'light'],
    [1280, 'dark'],
  ] as const),
)(
  'at %i px in %s all pages have the same colours, type, buttons and fields, fit, and axe finds no violation',
  async (width, colorScheme) => {
    await drive.put('a.txt');
    await drive.use({ viewport: { width, height: 800 }, colorScheme }, { isSignedIn: false });
    const seen = new Map<string, Set<string>>();
    const problems: string[] = [];
    await visitAll(async (name) => {
      for (const [part, style] of Object.entries(await page().evaluate<Computed>(COMPUTED)))
        if (style) seen.set(part, (seen.get(part) ?? new Set()).add(JSON.stringify(style)));
      const needed = await page().evaluate<number>('document.documentElement.scrollWidth');
      if (needed > width) problems.push(`${name}: ${needed} px wide`);
      problems.push(...(await drive.violations()).map((violation) => `${name}: ${violation}`));
    });
    expect(problems).toEqual([]);
    expect([...seen].map(([part, styles]) => [part, [...styles].slice(1)])).toEqual(
      ['body', 'button', 'card', 'field'].map((part) => [part, []]),
    );
  },
);
