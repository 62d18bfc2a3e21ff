import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addAccount } from '../../../src/service/accounts/provision.ts';
import { CALLBACK, CodeFlow, EMAIL, PASSWORD } from '../../support/code-flow.ts';
import { addPerson, besideService, FormBrowser, sentBack } from '../../support/consent.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import type { Answered } from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;
let flow: CodeFlow;

beforeAll(async () => {
  service = await startTestService({ clock });
  await addPerson(service, EMAIL, PASSWORD);
});
afterAll(() => service.close());

beforeEach(async () => {
  flow = await CodeFlow.start(service);
});

/** Adds `count` accounts that have linked the app. */
async function linkUsers(count: number): Promise<void> {
  await besideService(service, async ({ accounts, tokens }) => {
    for (let user = 0; user < count; user++) {
      const email = `${user}-${flow.app.key}@example.org`;
      const person = { email, givenName: 'N', surname: 'N', mayDeletePermanently: false };
      const { id } = await addAccount(accounts, person);
      await tokens.grantRefreshable(0, { accountId: id, appKey: flow.app.key, scopes: flow.app.scopes });
    }
  });
}

/** Signs in with a new account. Returns its browser and the page after the sign-in. */
async function signInAsNewUser(): Promise<{ browser: FormBrowser; page: Answered }> {
  const email = `new-${newUsers++}@example.org`;
  await addPerson(service, email, PASSWORD);
  const browser = new FormBrowser(service);
  await browser.open(flow.asking());
  return { browser, page: await browser.signIn(email, PASSWORD) };
}

let newUsers = 0;
const LIMIT_REACHED = 'This app has reached its user limit';

describe('user limit of an app', () => {
  test.each([
    ['in development', 'development', 50],
    ['with production applied for', 'applied', 500],
  ] as const)(
    'an app %s refuses a user above its limit, counts unused codes, and lets linked users link again',
    async (_, status, most) => {
      await besideService(service, ({ apps }) => apps.change(flow.app.key, { status }));
      await linkUsers(most - 1);
      const code = await flow.codeFor(flow.asking());
      // An unexchanged code counts as a user.
      const { page } = await signInAsNewUser();
      expect([page.status, page.text]).toEqual([403, expect.stringContaining(LIMIT_REACHED)]);
      expect((await flow.exchange(code)).status).toBe(200);
      // A linked user can link again at the limit.
      expect((await flow.exchange(await flow.codeFor(flow.asking()))).status).toBe(200);
      expect((await signInAsNewUser()).page.text).toContain(LIMIT_REACHED);
    },
  );

  test('an app at its user limit takes more users once its status allows them', async () => {
    await besideService(service, ({ apps }) => apps.change(flow.app.key, { status: 'development' }));
    await linkUsers(50);
    expect((await signInAsNewUser()).page.text).toContain(LIMIT_REACHED);
    await besideService(service, ({ apps }) => apps.change(flow.app.key, { status: 'applied' }));
    const { browser, page } = await signInAsNewUser();
    expect(page.text).toContain('wants access to your account');
    expect((await flow.exchange(sentBack(await browser.press('allow'), CALLBACK)['code'] ?? '')).status).toBe(
      200,
    );
  });

  test('two users who allow an app at once get its one free place once', async () => {
    await besideService(service, ({ apps }) => apps.change(flow.app.key, { status: 'development' }));
    await linkUsers(49);
    const both = [await signInAsNewUser(), await signInAsNewUser()];
    for (const { page } of both) expect(page.text).toContain('wants access to your account');
    const answers = await Promise.all(both.map(({ browser }) => browser.press('allow')));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 403]);
  });

  test('an unused code gives its place in the user limit back after ten minutes', async () => {
    await besideService(service, ({ apps }) => apps.change(flow.app.key, { status: 'development' }));
    await linkUsers(49);
    await flow.codeFor(flow.asking());
    expect((await signInAsNewUser()).page.text).toContain(LIMIT_REACHED);
    await clock.advance(600_000);
    expect((await signInAsNewUser()).page.text).toContain('wants access to your account');
  });

  test('an app in production takes more than 500 users', async () => {
    await linkUsers(501);
    expect((await signInAsNewUser()).page.text).toContain('wants access to your account');
  });
});
