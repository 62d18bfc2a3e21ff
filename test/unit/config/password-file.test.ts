import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { madeUpPassword } from '../../../src/config/password-file.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-password-'));
});
afterEach(() => rm(directory, { recursive: true }));

test('a generated password is stored for its owner only and is the same at the next start', async () => {
  const { text: password, isNew } = await madeUpPassword(directory);
  expect(password).toMatch(/^[\w-]{20}$/);
  expect(isNew).toBe(true);
  expect(await madeUpPassword(directory)).toMatchObject({ text: password, isNew: false });
  expect(await readdir(directory)).toEqual(['password']);
  const file = join(directory, 'password');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).toBe(`${password}\n`);
});

test('a generated password does not begin with a dash, which programs take for an option', async () => {
  const dashes = (sizeBytes: number) => Buffer.alloc(sizeBytes, '-----', 'base64url');
  const { text: password } = await madeUpPassword(directory, dashes);
  expect(password).toMatch(/^x[\w-]{19}$/);
  expect((await madeUpPassword(directory)).text).toBe(password);
});

test('an empty password file, as left by a full disk, is replaced by a new password', async () => {
  await writeFile(join(directory, 'password'), '\n');
  expect((await madeUpPassword(directory)).text).toHaveLength(20);
});
