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
function accountsOf(
  drives: readonly (string | readonly [string, string])[],
  { kept = {}, hasFiles = true }: Before = {},
): Record<string, string> {
  const asked = drives.map((drive) => {
    const [name, account] = typeof drive === 'string' ? [drive, undefined] : drive;
    return { name, account, root: '' };
  });
  const needs = {
    kept: new Map(Object.entries(kept)),
    isDefaultEmpty: () => !hasFiles,
    dataDirectory: '/data',
  };
  return Object.fromEntries(assignAccounts(asked, needs));
}

const own = (name: string) => `${name}@drives.davgate.invalid`;

test('the only drive has the default account, which has the files of earlier versions', () => {
  expect(accountsOf(['default'])).toEqual({ default: DEFAULT_EMAIL });
  expect(accountsOf(['home'])).toEqual({ home: DEFAULT_EMAIL });
});

test('several drives of a new data directory each have their own account', () => {
  expect(accountsOf(['a', 'b'], { hasFiles: false })).toEqual({ a: own('a'), b: own('b') });
});

test('an added drive leaves the first one its account, in any order', () => {
  const kept = { home: DEFAULT_EMAIL };
  expect(accountsOf(['new', 'home'], { kept })).toEqual({ new: own('new'), home: DEFAULT_EMAIL });
});

test('a drive that is removed and configured again has its previous account', () => {
  const kept = { a: own('a'), b: own('b') };
  expect(accountsOf(['b'], { kept })).toEqual({ b: own('b') });
});

test('files that several drives shared are assigned to none of them without "account" in the configuration', () => {
  expect(() => accountsOf(['a', 'b'])).toThrow(DriveAccountError);
  expect(() => accountsOf(['a', 'b'])).toThrow(
    /^\/data holds files .* which of the drives a, b they belong to: write "account": "drive@davgate\.invalid"/,
  );
  expect(accountsOf([['a', DEFAULT_EMAIL], 'b'])).toEqual({ a: DEFAULT_EMAIL, b: own('b') });
});

test('a drive with another name does not take over the files of the previous only drive', () => {
  const kept = { ann: DEFAULT_EMAIL };
  expect(() => accountsOf(['bob'], { kept })).toThrow(
    /^drive "bob" is new, and the files in \/data belong to the drive "ann": name this one "ann", or hand the files on/,
  );
  expect(accountsOf([['bob', DEFAULT_EMAIL]], { kept })).toEqual({ bob: DEFAULT_EMAIL });
  expect(accountsOf(['bob'], { kept, hasFiles: false })).toEqual({ bob: own('bob') });
});

test('two drives share an account only if the configuration names it for both', () => {
  const both = { a: 'ann@example.org', b: 'Ann@example.org' };
  expect(accountsOf(Object.entries(both))).toEqual(both);
  expect(() => accountsOf(['a', 'b'], { kept: both })).toThrow(/^the drives "a" and "b" would both have/);
  expect(() => accountsOf([['a', own('b')], 'b'], { kept: { b: own('b') } })).toThrow(DriveAccountError);
  // Drive names that differ only in letter case would have the same email address.
  expect(() => accountsOf(['a', 'A'], { hasFiles: false })).toThrow(DriveAccountError);
});
