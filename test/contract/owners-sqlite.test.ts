import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { Journals } from '../../src/state/journal.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { JOURNAL_MIGRATIONS } from '../../src/state/sqlite/journal/migrations.ts';
import { MIGRATIONS } from '../../src/state/sqlite/migrations.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import { openDatabase } from '../../src/state/sqlite/state-database.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { silentLog } from '../../src/util/log.ts';
import { lockOn } from '../support/locks.ts';
import { path } from '../support/paths.ts';
import { bytes, localFileAt } from './local-files.contract.ts';
import { ANN, BOB, ownersContract } from './owners.contract.ts';
import { property } from './properties.contract.ts';

const opened: { close(): Promise<void> }[] = [];
const directories: string[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-owners-'));
  directories.push(directory);
  return directory;
}

function openState(directory = newDirectory()): State {
  const state = openSqliteState({ directory });
  opened.push(state);
  return state;
}

async function openJournals(directory = newDirectory()): Promise<Journals> {
  const journals = await openSqliteJournals(
    {
      journal: join(directory, 'journal'),
      lostAndFound: join(directory, 'lost'),
    },
    silentLog,
  );
  opened.push(journals);
  return journals;
}

ownersContract('SQLite', async () => openState().owners);
ownersContract('the journal', async () => (await openJournals()).owners);

const NOW_MS = Date.UTC(2026, 0, 1);

async function fill(drive: DriveState, name: string): Promise<void> {
  await drive.locks.create(NOW_MS, lockOn(`/${name}`));
  await drive.properties.change('id:1', [{ set: property(name) }]);
  await drive.localFiles.put(localFileAt('/._x', bytes(name)), bytes(name));
}

async function contentOf(drive: DriveState): Promise<unknown> {
  return {
    locks: (await drive.locks.all(NOW_MS)).map(({ root }) => root),
    properties: (await drive.properties.of(['id:1'])).get('id:1')?.map(({ name }) => name),
    aside: (await drive.localFiles.read(path('/._x')))?.toString(),
  };
}

const NOTHING = { locks: [], properties: undefined, aside: undefined };
const ofAnn = { locks: ['/ann'], properties: ['ann'], aside: 'ann' };
const ofBob = { locks: ['/bob'], properties: ['bob'], aside: 'bob' };

describe('the state of a drive', () => {
  test('each account has its own state of a drive when accounts take turns', async () => {
    const directory = newDirectory();
    const turns = [
      [ANN, NOTHING, 'ann'],
      [BOB, NOTHING, 'bob'],
      [ANN, ofAnn, undefined],
      [BOB, ofBob, undefined],
      [ANN, ofAnn, undefined],
    ] as const;
    for (const [owner, content, more] of turns) {
      const state = openSqliteState({ directory });
      await state.owners.set('d', owner);
      expect(await contentOf(state.drive('d'))).toEqual(content);
      if (more) await fill(state.drive('d'), more);
      expect(await contentOf(state.drive('other'))).toEqual(NOTHING);
      await state.close();
    }
  });

  test("the state of a drive that is already open becomes the new account's", async () => {
    const state = openState();
    await state.owners.set('d', ANN);
    await fill(state.drive('d'), 'ann');
    await state.owners.set('d', BOB);
    expect(await contentOf(state.drive('d'))).toEqual(NOTHING);
  });

  test('the state of a drive stays when only the root or the email address of its account changes', async () => {
    const state = openState();
    await state.owners.set('d', ANN);
    await fill(state.drive('d'), 'ann');
    const moved = { ...ANN, email: 'ann@example.com', root: '/Work' };
    await state.owners.set('d', moved);
    expect(await contentOf(state.drive('d'))).toEqual(ofAnn);
    expect(await state.owners.get('d')).toEqual(moved);
  });

  test('state from an earlier davgate goes to the first account of its drive', async () => {
    const directory = newDirectory();
    const old = openDatabase(directory, MIGRATIONS.slice(0, 1));
    old.exec("INSERT INTO drives (name, properties_version) VALUES ('d', 7)");
    old.close();
    const state = openState(directory);
    expect(await state.owners.get('d')).toBeUndefined();
    await state.owners.set('d', ANN);
    expect(await state.drive('d').properties.version()).toBe(7);
  });
});

test('a journal from an earlier davgate is migrated and stores its owner', async () => {
  const directory = newDirectory();
  openDatabase(join(directory, 'journal'), JOURNAL_MIGRATIONS.slice(0, 1)).close();
  const journals = await openJournals(directory);
  await journals.owners.set('d', ANN);
  await journals.owners.set('d', BOB);
  expect(await journals.owners.get('d')).toEqual(BOB);
});
