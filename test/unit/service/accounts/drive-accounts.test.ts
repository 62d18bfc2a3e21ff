import { expect, test } from 'vitest';
import { assignAccounts, DriveAccountError } from '../../../../src/service/accounts/drive-accounts.ts';
import { DEFAULT_EMAIL } from '../../../../src/service/accounts/provision.ts';

interface Before {
  /** Account of each drive from earlier starts. */
  readonly kept?: Readonly<Record<string, string>>;
  /** Whether the default account contains files. */
  readonly hasFiles?: boolean;
}

/** Assigns accounts to drives. Each drive is a name, or a name with the account from the configuration. */
async function accountsOf(
  drives: readonly (string | readonly [string, string])[],
  { kept = {}, hasFiles = true }: Before = {},
): Promise<Record<string, string>> {
  const asked = drives.map((drive) => {
    const [name, account] = typeof drive === 'string' ? [drive, undefined] : drive;
    return { name, account, root: '' };
  });
  const needs = {
    kept: new Map(Object.entries(kept)),
    isDefaultEmpty: async () => !hasFiles,
    dataDirectory: '/data',
  };
  return Object.fromEntries(await assignAccounts(asked, needs));
}

const own = (name: string) => `${name}@drives.davgate.invalid`;

test('the only drive has the default account, which has the files of earlier versions', async () => {
  expect(await accountsOf(['default'])).toEqual({ default: DEFAULT_EMAIL });
  expect(await accountsOf(['home'])).toEqual({ home: DEFAULT_EMAIL });
});

test('several drives of a new data directory each have their own account', async () => {
  expect(await accountsOf(['a', 'b'], { hasFiles: false })).toEqual({ a: own('a'), b: own('b') });
});

test('an added drive leaves the first one its account, in any order', async () => {
  const kept = { home: DEFAULT_EMAIL };
  expect(await accountsOf(['new', 'home'], { kept })).toEqual({ new: own('new'), home: DEFAULT_EMAIL });
});

test('a drive that is removed and configured again has its previous account', async () => {
  const kept = { a: own('a'), b: own('b') };
  expect(await accountsOf(['b'], { kept })).toEqual({ b: own('b') });
});

test('files that several drives shared are assigned to none of them without "account" in the configuration', async () => {
  await expect(accountsOf(['a', 'b'])).rejects.toThrow(DriveAccountError);
  await expect(accountsOf(['a', 'b'])).rejects.toThrow(
    /^\/data holds files .* which of the drives a, b they belong to: write "account": "drive@davgate\.invalid"/,
  );
  expect(await accountsOf([['a', DEFAULT_EMAIL], 'b'])).toEqual({ a: DEFAULT_EMAIL, b: own('b') });
});

test('a drive with another name does not take over the files of the previous only drive', async () => {
  const kept = { ann: DEFAULT_EMAIL };
  await expect(accountsOf(['bob'], { kept })).rejects.toThrow(
    /^drive "bob" is new, and the files in \/data belong to the drive "ann": name this one "ann", or hand the files on/,
  );
  expect(await accountsOf([['bob', DEFAULT_EMAIL]], { kept })).toEqual({ bob: DEFAULT_EMAIL });
  expect(await accountsOf(['bob'], { kept, hasFiles: false })).toEqual({ bob: own('bob') });
});

test('two drives share an account only if the configuration names it for both', async () => {
  const both = { a: 'ann@example.org', b: 'Ann@example.org' };
  expect(await accountsOf(Object.entries(both))).toEqual(both);
  await expect(accountsOf(['a', 'b'], { kept: both })).rejects.toThrow(
    /^the drives "a" and "b" would both have/,
  );
  await expect(accountsOf([['a', own('b')], 'b'], { kept: { b: own('b') } })).rejects.toThrow(
    DriveAccountError,
  );
  // Drive names that differ only in letter case would have the same email address.
  await expect(accountsOf(['a', 'A'], { hasFiles: false })).rejects.toThrow(DriveAccountError);
});
