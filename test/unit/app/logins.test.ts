import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loginsOf } from '../../../src/app/logins.ts';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { settingsOfArguments } from '../../support/settings.ts';

/** Returns a function that gives the hash for arguments, when the users before had another. */
function hashes(): (args: readonly string[], before?: string) => Promise<string | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-logins-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return async (args, before) => {
    const settings = settingsOfArguments(['--user', 'ann', '--data-dir', directory, ...args]);
    const config = resolveConfig(settings, undefined, { XDG_CACHE_HOME: directory }, '/nowhere');
    const { users = [] } = await loginsOf(config);
    const known = before === undefined ? [] : users.map((user) => ({ ...user, passwordHash: before }));
    return (await loginsOf(config, known)).users?.[0]?.passwordHash;
  };
}

test('a user whose password is the same keeps the hash, and so stays signed in', async () => {
  const hashOf = hashes();
  for (const args of [['--password', 'secret'], []]) {
    const before = await hashOf(args);
    expect(await hashOf(args, before)).toBe(before);
  }
});

test('a user with another password gets another hash', async () => {
  const hashOf = hashes();
  const before = await hashOf(['--password', 'secret']);
  expect(await hashOf(['--password', 'other'], before)).not.toBe(before);
});

test('a user of the configuration keeps the own bandwidth limit', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-logins-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const settings = settingsOfArguments(['--data-dir', directory]);
  const config = resolveConfig(settings, undefined, { XDG_CACHE_HOME: directory }, '/nowhere');
  const bandwidth = { uploadBytes: 1_000_000 };
  const users = [{ name: 'ann', grants: [{ drive: 'default' }], passwordHash: '{SHA}x', bandwidth }];
  expect((await loginsOf({ ...config, users })).users).toEqual(users);
});

test('a decomposed --user is the user whose name clients send composed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-logins-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const args = ['--user', 'Rene\u0301', '--auth-url', 'http://127.0.0.1:9/', '--data-dir', directory];
  const config = resolveConfig(settingsOfArguments(args), undefined, {}, '/nowhere');
  expect((await loginsOf(config)).users?.map(({ name }) => name)).toEqual(['René']);
});
