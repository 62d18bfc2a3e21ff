import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { provision } from '../../../../src/service/accounts/provision.ts';
import { hashOfPassword, isPassword } from '../../../../src/service/accounts/secrets.ts';
import { openDatabase } from '../../../../src/service/registry/database.ts';
import { type Registry, registryIn } from '../../../../src/service/registry/registry.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const clock = new ManualClock();
let directory: string;
let registry: Registry;
let close: () => void;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-provision-'));
  const database = openDatabase(directory);
  registry = registryIn(database);
  close = () => database.close();
});
afterEach(async () => {
  close();
  await rm(directory, { recursive: true });
});

async function signsIn(email: string, password = ''): Promise<boolean> {
  const hash = registry.accounts.withEmail(email)?.passwordHash;
  return hash !== undefined && (await isPassword(password, hash));
}

test('provision fails when it cannot write the password file, and sets a working password at the next try', async () => {
  const later = join(directory, 'not there yet');
  await expect(provision(registry, clock, later)).rejects.toThrow('ENOENT');
  await mkdir(later);
  const { email, password } = await provision(registry, clock, later);
  expect(await signsIn(email, password)).toBe(true);
});

test('provision sets the password that an interrupted run has written to the file', async () => {
  const accounts = {
    ...registry.accounts,
    change: () => {
      throw new Error('out of power');
    },
  };
  await expect(provision({ ...registry, accounts }, clock, directory)).rejects.toThrow('out of power');
  const { email, password } = await provision(registry, clock, directory);
  expect(await signsIn(email, password)).toBe(true);
  expect((await provision(registry, clock, directory)).password).toBe(password);
});

test('the password that provision sets signs in, and another one does not', async () => {
  const { email, password = '' } = await provision(registry, clock, directory);
  expect(await signsIn(email, password)).toBe(true);
  expect(await signsIn(email, password.slice(1))).toBe(false);
});

test('provision keeps a password that is stored with a slow hash', async () => {
  const { email, password = '' } = await provision(registry, clock, directory);
  const { id = '' } = registry.accounts.withEmail(email) ?? {};
  registry.accounts.change(id, { passwordHash: await hashOfPassword(password) });
  expect((await provision(registry, clock, directory)).password).toBe(password);
  expect(await signsIn(email, password)).toBe(true);
});
