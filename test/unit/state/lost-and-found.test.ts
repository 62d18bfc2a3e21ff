import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LostAndFound } from '../../../src/state/sqlite/journal/lost-and-found.ts';
import { pendingWrite } from '../../contract/journal.contract.ts';

const BYTES = Buffer.from('kept');

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'davgate-lost-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test('lost writes are listed beside a folder and a link to nothing that a user has put there', async () => {
  const lost = await LostAndFound.open(directory);
  const keptAt = await lost.keep('d', pendingWrite('1', BYTES), { bytes: BYTES }, 'refused');
  symlinkSync('/nowhere', join(directory, 'link'));
  mkdirSync(join(directory, 'folder'));
  expect(await lost.list()).toMatchObject([
    { name: basename(keptAt), sizeBytes: BYTES.length, reason: 'refused' },
  ]);
});
