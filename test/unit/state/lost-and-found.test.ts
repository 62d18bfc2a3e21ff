import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LostAndFound } from '../../../src/state/sqlite/journal/lost-and-found.ts';
import { pendingWrite } from '../../contract/journal.contract.ts';
import { joined } from '../../support/byte-source.ts';
import { path } from '../../support/paths.ts';

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

test('a lost write whose name ends like a file beside it is listed, read and dropped', async () => {
  const lost = await LostAndFound.open(directory);
  for (const [id, name] of [
    ['1', 'film.mkv.unfinished'],
    ['2', 'why.reason.txt'],
  ] as const)
    await lost.keep('d', { ...pendingWrite(id, BYTES), path: path(`/${name}`) }, { bytes: BYTES }, 'refused');
  const listed = await lost.list();
  expect(listed.map((write) => write.path)).toEqual(['/film.mkv.unfinished', '/why.reason.txt']);
  for (const { name } of listed) {
    expect(await joined(lost.read(name))).toEqual(BYTES);
    await lost.drop(name);
  }
  expect([await lost.list(), lost.count, readdirSync(directory)]).toEqual([[], 0, []]);
});
