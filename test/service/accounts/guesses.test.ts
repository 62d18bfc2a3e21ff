import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { passwordGate } from '../../../src/service/accounts/guess-limits.ts';
import { signInTo } from '../../../src/service/oauth/sign-in.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { addApp, addPerson, besideService, FormBrowser } from '../../support/consent.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/program.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, send, sharedLink } from '../../support/service-client.ts';
import { unhurried } from '../../support/unhurried.ts';

const EMAIL = 'ann@example.org';
const PASSWORD = 'correct horse';
const HERE = '127.0.0.1';
const HOUR_MS = 3_600_000;

/** Shortest waits before each wrong password that is still compared, in ms. The next one would be 16 s. */
const WAITS_MS = [0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000];

let clock: ManualClock;
let service: TestService;

beforeEach(async () => {
  clock = new ManualClock();
  service = await startTestService({ clock });
  await addPerson(service, EMAIL, PASSWORD);
});
afterEach(() => service.close());

/** Calls `guess` as soon as each further guess is allowed. */
async function guessing(guess: (password: string) => Promise<unknown>): Promise<void> {
  for (const [index, waitMs] of WAITS_MS.entries()) {
    await clock.advance(waitMs);
    await guess(`guess ${index}`);
  }
}

/** Starts a service on a copy of the files that a killed process would leave now. */
async function startedAfterKill(): Promise<TestService> {
  const folder = await temporaryDirectory();
  const dataDirectory = join(folder.path, 'data');
  await cp(service.dataDirectory, dataDirectory, { recursive: true });
  const started = await startTestService({ clock, dataDirectory });
  onTestFinished(async () => {
    await started.close();
    await folder.remove();
  });
  return started;
}

/** Returns the form of the sign-in page. */
async function signInForm(at: TestService): Promise<FormBrowser> {
  const browser = new FormBrowser(at);
  const { app } = await addApp(at);
  await browser.open({ client_id: app.key, response_type: 'code' });
  return browser;
}

const sendPassword = async (at: TestService, link: string, password: string) => {
  const { pathname, search } = new URL(link);
  return await send(`${at.url}${pathname}${search}`, {
    method: 'POST',
    body: new URLSearchParams({ password }),
  });
};

async function guardedLink(): Promise<string> {
  await put(service, '/guarded', 'text');
  return await sharedLink(service, '/guarded', {
    requested_visibility: 'password',
    link_password: PASSWORD,
  });
}

test('wrong passwords at a sign-in delay the next one also after a restart', async () => {
  const form = await signInForm(service);
  await guessing(async (password) => expect((await form.signIn(EMAIL, password)).status).toBe(403));
  await service.service.close();
  const again = await startTestService({ clock, dataDirectory: service.dataDirectory });
  try {
    const answered = await (await signInForm(again)).signIn(EMAIL, PASSWORD);
    expect([answered.status, answered.headers.get('retry-after')]).toEqual([429, '16']);
  } finally {
    await again.close();
  }
});

test('wrong passwords of a link delay the next one also after a kill', async () => {
  const link = await guardedLink();
  await guessing(async (password) => expect((await sendPassword(service, link, password)).status).toBe(403));
  const again = await startedAfterKill();
  const answered = await sendPassword(again, link, PASSWORD);
  expect([answered.status, answered.headers.get('retry-after')]).toEqual([429, '16']);
});

test('wrong passwords that another process has seen delay a sign-in', async () => {
  await besideService(service, async (directory) => {
    const other = signInTo({ ...directory, clock, log: silentLog, closing: unhurried() });
    await guessing((password) => other.check(EMAIL, password, HERE));
  });
  const answered = await (await signInForm(service)).signIn(EMAIL, PASSWORD);
  expect([answered.status, answered.headers.get('retry-after')]).toEqual([429, '16']);
});

test('wrong passwords for an account delay nobody at a link of the same name', async () => {
  await besideService(service, async ({ guesses }) => {
    const deps = { guesses, clock, closing: unhurried() };
    const attempt = { name: 'same', address: HERE, exists: true };
    const account = passwordGate('account', deps);
    await guessing(() => account.check(attempt, async () => false));
    expect(await account.check(attempt, async () => true)).toEqual({ retryAfterMs: 16_000 });
    expect(await passwordGate('link', deps).check(attempt, async () => true)).toBe(true);
  });
});

test('concurrent wrong passwords at two processes are delayed like consecutive ones at one', async () => {
  await besideService(service, ({ guesses: one }) =>
    besideService(service, async ({ guesses: other }) => {
      const gates = [one, other].map((guesses) =>
        passwordGate('account', { guesses, clock, closing: unhurried() }),
      );
      const tries = Array.from({ length: 4 }, () =>
        gates.map((gate) => gate.check({ name: 'ann', address: HERE, exists: true }, async () => false)),
      );
      const start = clock.now();
      const outcomes = await clock.during(Promise.all(tries.flat()));
      expect(outcomes.filter((outcome) => outcome === false)).toHaveLength(7);
      expect(clock.now() - start).toBe(7_000);
    }),
  );
});

describe('the rows of wrong passwords', () => {
  /** Returns how often wrong passwords are counted, by account or link and by client. */
  const rows = () => {
    const database = new Sqlite(join(service.dataDirectory, 'accounts.sqlite'), { readonly: true });
    try {
      return database.prepare<[], number>('SELECT wrong FROM guesses ORDER BY wrong').pluck().all();
    } finally {
      database.close();
    }
  };

  test('the right password of a person and of a link leaves no row', async () => {
    const form = await signInForm(service);
    expect((await form.signIn(EMAIL, PASSWORD)).text).toContain('value="allow"');
    expect((await sendPassword(service, await guardedLink(), PASSWORD)).status).toBe(303);
    expect(rows()).toEqual([]);
  });

  test('housekeeping removes wrong passwords when they no longer count', async () => {
    const form = await signInForm(service);
    for (let guess = 0; guess < 3; guess++) await form.signIn(EMAIL, 'wrong');
    expect(rows()).toEqual([3, 3]);
    await eventually(async () => {
      await clock.advance(HOUR_MS);
      expect(rows()).toEqual([]);
    });
  });
});
