import type { Account, NewAccount } from '../../../src/service/accounts/accounts.ts';
import type { App, NewApp } from '../../../src/service/accounts/apps.ts';
import type { Consent } from '../../../src/service/accounts/grants.ts';
import { SCOPES } from '../../../src/service/accounts/scopes.ts';
import type { Directory } from '../../../src/service/directory/directory.ts';

/** Two openings of one empty database, like those of two processes. */
export interface OpenedTwice {
  readonly directory: Directory;
  readonly other: Directory;
}

export type OpenTwice = () => Promise<OpenedTwice>;

export const NOW_MS = 1_700_000_000_000;
export const HOUR_MS = 60 * 60 * 1000;

/** Number of calls of a race, half of them through each opening. */
const CALLS = 16;

let namespaces = 0;

/** Returns an account's fields; those left out have any valid value. */
export function person(fields: Partial<NewAccount> = {}): NewAccount & { readonly limitBytes: number } {
  const plain = { email: 'ann@example.org', givenName: 'Ann', surname: 'Lee', mayDeletePermanently: false };
  return { ...plain, limitBytes: 1000, ...fields };
}

/** Adds an account with a home of its own. */
export async function addAccount(
  { accounts }: Directory,
  email = 'ann@example.org',
  team?: string,
): Promise<Account> {
  return await accounts.add(person({ email }), newHome(), team);
}

/** Returns a namespace that no other account of the tests has. */
export function newHome(): string {
  namespaces += 1;
  return String(namespaces);
}

/** Adds an app. */
export async function addApp({ apps }: Directory, fields: Partial<NewApp> = {}): Promise<App> {
  const plain = { name: 'App', status: 'production', scopes: SCOPES, redirectUris: [] } as const;
  return (await apps.add({ ...plain, ...fields })).app;
}

/** Adds an account and an app. Returns the account's consent for the app, which is not stored. */
export async function newConsent(directory: Directory, fields: Partial<Consent> = {}): Promise<Consent> {
  const [account, app] = [await addAccount(directory), await addApp(directory)];
  return { accountId: account.id, appKey: app.key, scopes: ['files.content.read'], ...fields };
}

/** Makes many calls at once through both openings. Returns the results of those that did not throw. */
export async function race<T>(
  { directory, other }: OpenedTwice,
  call: (directory: Directory, index: number) => Promise<T>,
): Promise<readonly T[]> {
  const calls = Array.from({ length: CALLS }, (_, index) => call(index % 2 === 0 ? directory : other, index));
  const settled = await Promise.allSettled(calls);
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

/** Like `race`, for calls that never throw. */
export async function raceOfAll<T>(
  opened: OpenedTwice,
  call: (directory: Directory, index: number) => Promise<T>,
): Promise<readonly T[]> {
  const failures: unknown[] = [];
  const results = await race(opened, (directory, index) =>
    call(directory, index).catch((error: unknown) => {
      failures.push(error);
      throw error;
    }),
  );
  if (failures.length > 0) throw failures[0];
  return results;
}
