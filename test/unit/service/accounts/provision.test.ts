import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { provision } from '../../../../src/service/accounts/provision.ts';
import { hashOfPassword, isPassword } from '../../../../src/service/accounts/secrets.ts';
import type { Directory } from '../../../../src/service/directory/directory.ts';
import { openSqliteDirectory } from '../../../../src/service/directory/sqlite/sqlite-directory.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const clock = new ManualClock();
let folder: string;
let directory: Directory;
let close: () => Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'davgate-provision-'));
  ({ directory, close } = openSqliteDirectory(folder));
});
afterEach(async () => {
  await close();
  await rm(folder, { recursive: true });
});

async function signsIn(email: string, password = ''): Promise<boolean> {
  const hash = (await directory.accounts.withEmail(email))?.passwordHash;
  return hash !== undefined && (await isPassword(password, hash));
}

test('provision fails when it cannot write the password file, and sets a working password at the next try', async () => {
  const later = join(folder, 'not there yet');
  await expect(provision(directory, clock, later)).rejects.toThrow('ENOENT');
  await mkdir(later);
  const { email, password } = await provision(directory, clock, later);
  expect(await signsIn(email, password)).toBe(true);
});

test('provision sets the password that an interrupted run has written to the file', async () => {
  const accounts = {
    ...directory.accounts,
    addPassword: async () => {
      throw new Error('out of power');
    },
  };
  await expect(provision({ ...directory, accounts }, clock, folder)).rejects.toThrow('out of power');
  const { email, password } = await provision(directory, clock, folder);
  expect(await signsIn(email, password)).toBe(true);
  expect((await provision(directory, clock, folder)).password).toBe(password);
});

test('the password that provision sets signs in, and another one does not', async () => {
  const { email, password = '' } = await provision(directory, clock, folder);
  expect(await signsIn(email, password)).toBe(true);
  expect(await signsIn(email, password.slice(1))).toBe(false);
});

test('provision keeps a password that is stored with a slow hash', async () => {
  const { email, password = '' } = await provision(directory, clock, folder);
  const { id = '' } = (await directory.accounts.withEmail(email)) ?? {};
  await directory.accounts.change(id, { passwordHash: await hashOfPassword(password) });
  expect((await provision(directory, clock, folder)).password).toBe(password);
  expect(await signsIn(email, password)).toBe(true);
});

test('of two processes that start at the same time one has the password, and the other one none that is wrong', async () => {
  const places = [folder, join(folder, 'other')];
  await mkdir(join(folder, 'other'));
  const both = await Promise.all(places.map((place) => provision(directory, clock, place)));
  const passwords = both.flatMap(({ password }) => password ?? []);
  expect(passwords).toHaveLength(1);
  expect(await signsIn(both[0]?.email ?? '', passwords[0])).toBe(true);
  const files = await Promise.all(places.map((place) => readFile(join(place, 'credentials.json'), 'utf8')));
  expect(files.map((text) => JSON.parse(text))).toEqual(both);
});
