import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { StateInUse, StateUnwritable } from '../../src/state/errors.ts';
import { openSqliteState, sqliteStateOn } from '../../src/state/sqlite/state.ts';
import { openDatabase } from '../../src/state/sqlite/state-database.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { lockOn } from '../support/locks.ts';
import { path } from '../support/paths.ts';
import { appPasswordsContract } from './app-passwords.contract.ts';
import { intent, intentsContract } from './intents.contract.ts';
import {
  bytes,
  LIMIT_BYTES,
  localFileAt,
  localFilesContract,
  localFilesLimitContract,
} from './local-files.contract.ts';
import { locksContract } from './locks.contract.ts';
import { placeholderAt, placeholdersContract } from './placeholders.contract.ts';
import { propertiesContract, property } from './properties.contract.ts';
import { relocation, replacementsContract } from './replacements.contract.ts';
import { secretContract } from './secret.contract.ts';
import { timesContract } from './times.contract.ts';
import { uploadLinksContract } from './upload-links.contract.ts';

const directories: string[] = [];
const states: State[] = [];

afterEach(async () => {
  for (const state of states.splice(0)) await state.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-state-'));
  directories.push(directory);
  return directory;
}

function open(directory = newDirectory(), localFilesBytesMax?: number): State {
  const state = openSqliteState({ directory, ...(localFilesBytesMax && { localFilesBytesMax }) });
  states.push(state);
  return state;
}

const openDrive = (localFilesBytesMax?: number): DriveState => open(undefined, localFilesBytesMax).drive('d');

locksContract('SQLite', async () => openDrive().locks);
propertiesContract('SQLite', async () => openDrive().properties);
localFilesContract('SQLite', async () => openDrive().localFiles);
localFilesLimitContract('SQLite', async () => openDrive(LIMIT_BYTES).localFiles);
placeholdersContract('SQLite', async () => openDrive().placeholders);
timesContract('SQLite', async () => openDrive().times);
replacementsContract('SQLite', async () => openDrive().replacements);
appPasswordsContract('SQLite', async () => open().appPasswords);
uploadLinksContract('SQLite', async () => open().uploadLinks);
intentsContract('SQLite', async () => openDrive().intents);
secretContract('SQLite', () => {
  const directory = newDirectory();
  return async () => openSqliteState({ directory });
});

const NOW_MS = Date.UTC(2026, 0, 1);
const lock = lockOn('/a/b');

async function fill(drive: DriveState): Promise<void> {
  await drive.locks.create(NOW_MS, lock);
  await drive.properties.change('id:1', [{ set: property('a') }]);
  await drive.localFiles.put(localFileAt('/a/._b', bytes('fork')), bytes('fork'));
  await drive.placeholders.put(placeholderAt('/a/new'));
  await drive.times.set('id:1', { rev: 'r1', modifiedMs: 5_000 });
  await drive.replacements.note(relocation('1'));
  await drive.intents.note(intent('1'));
}

async function contentOf(drive: DriveState): Promise<unknown> {
  return {
    locks: await drive.locks.all(NOW_MS),
    properties: await drive.properties.of(['id:1']),
    version: await drive.properties.version(),
    localFiles: await drive.localFiles.in(path('/a')),
    aside: (await drive.localFiles.read(path('/a/._b')))?.toString(),
    placeholders: await drive.placeholders.within(path('/')),
    times: await drive.times.of(['id:1']),
    replacements: await drive.replacements.all(),
    intents: await drive.intents.get('1'),
  };
}

describe('the state in SQLite', () => {
  test('all state is there after the database was closed and reopened', async () => {
    const directory = newDirectory();
    const first = open(directory);
    await fill(first.drive('d'));
    const before = await contentOf(first.drive('d'));
    expect(before).toMatchObject({ locks: [lock], aside: 'fork', placeholders: [placeholderAt('/a/new')] });
    await first.close();
    const drive = open(directory).drive('d');
    expect(await contentOf(drive)).toEqual(before);
    expect(await drive.locks.create(NOW_MS, lockOn('/a/b/c'))).toEqual({ conflict: lock });
    await drive.properties.change('id:2', [{ set: property('b') }]);
    expect(await drive.properties.version()).toBe(2);
  });

  test('a refreshed lock keeps its new end and a released one stays gone after the database was reopened', async () => {
    const directory = newDirectory();
    const first = open(directory);
    const { locks } = first.drive('d');
    const [kept, gone] = [lockOn('/kept'), lockOn('/gone')];
    await locks.create(NOW_MS, kept);
    await locks.create(NOW_MS, gone);
    const span = { timeoutSeconds: 7, expiresMs: NOW_MS + 7_000 };
    await locks.refresh(NOW_MS, kept.token, span);
    await locks.release(gone.token);
    await first.close();
    expect(await open(directory).drive('d').locks.all(NOW_MS)).toEqual([{ ...kept, ...span }]);
  });

  test('drives have separate state', async () => {
    const state = open();
    await fill(state.drive('one'));
    const before = await contentOf(state.drive('one'));
    const other = state.drive('two');
    expect(await contentOf(other)).toMatchObject({
      locks: [],
      localFiles: [],
      placeholders: [],
      replacements: [],
    });
    expect(await other.locks.create(NOW_MS, lockOn('/a/b'))).toHaveProperty('token');
    await other.localFiles.forget(path('/'));
    for (const { token } of await state.drive('one').locks.all(NOW_MS))
      expect(await other.locks.release(token)).toBe(false);
    await other.properties.forget(['id:1']);
    await other.times.forget(['id:1']);
    await other.replacements.remove('1');
    await other.intents.remove(['1']);
    expect(await contentOf(state.drive('one'))).toEqual(before);
  });

  test('changes before a close are stored, and later ones are rejected', async () => {
    const directory = newDirectory();
    const first = open(directory);
    const { locks } = first.drive('d');
    const asked = locks.create(NOW_MS, lock);
    await first.close();
    expect(await asked).toEqual(lock);
    await expect(locks.release(lock.token)).rejects.toThrow('closed');
    expect(await open(directory).drive('d').locks.all(NOW_MS)).toEqual([lock]);
  });

  test('changes that fail on a full disk leave no trace, and later ones succeed when there is room', async () => {
    const directory = newDirectory();
    const database = openDatabase(directory);
    const state = sqliteStateOn(database, { directory });
    states.push(state);
    const drive = state.drive('d');
    await fill(drive);
    const before = await contentOf(drive);
    const pages = Number(database.pragma('page_count', { simple: true }));
    database.pragma(`max_page_count = ${pages}`);
    const large = bytes('x'.repeat(1_000_000));
    const results = await Promise.allSettled([
      drive.locks.create(NOW_MS, lockOn('/other', { ownerXml: 'x'.repeat(100_000) })),
      drive.localFiles.put(localFileAt('/._large', large), large),
      drive.properties.change('id:1', [{ set: property('large', 'x'.repeat(100_000)) }]),
    ]);
    for (const result of results) {
      const reason: unknown = result.status === 'rejected' ? result.reason : undefined;
      expect(reason).toBeInstanceOf(StateUnwritable);
      expect(String(reason)).toContain('disk is full');
    }
    expect(await contentOf(drive)).toEqual(before);
    expect(await drive.localFiles.get(path('/._large'))).toBeUndefined();
    database.pragma('max_page_count = 1000000');
    expect(await drive.locks.create(NOW_MS, lockOn('/other'))).toHaveProperty('token');
  });

  test('of several concurrent changes only the one that fails is rejected', async () => {
    const { locks } = openDrive();
    const again = { ...lockOn('/again'), token: lock.token };
    const results = await Promise.allSettled([
      locks.create(NOW_MS, lock),
      locks.create(NOW_MS, again),
      locks.create(NOW_MS, lockOn('/third')),
    ]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await locks.all(NOW_MS)).map((taken) => taken.root)).toEqual(['/a/b', '/third']);
  });
});

describe('state directories', () => {
  test('a state directory in use by another process is refused until that process closes it', async () => {
    const directory = newDirectory();
    const first = open(directory);
    expect(() => openSqliteState({ directory })).toThrow(StateInUse);
    expect(() => openSqliteState({ directory })).toThrow(`another davgate is using ${directory}`);
    await first.close();
    open(directory);
  });

  test('a missing state directory is created for its owner only', async () => {
    const directory = join(newDirectory(), 'not', 'there');
    const drive = open(directory).drive('d');
    await fill(drive);
    expect(await contentOf(drive)).toMatchObject({ locks: [lock] });
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  const refused = (directory: string) => {
    const attempt = () => openSqliteState({ directory });
    expect(attempt).toThrow(StateUnwritable);
    expect(attempt).toThrow(directory);
    return expect(attempt);
  };

  test('a file in place of the state directory is refused', () => {
    const file = join(newDirectory(), 'file');
    writeFileSync(file, '');
    refused(file).toThrow('a file has that name; remove or rename it');
    refused(join(file, 'below')).toThrow('part of the path is a file');
  });

  test('a state database that is a folder, has other content or is from a newer davgate is refused', () => {
    const folder = newDirectory();
    mkdirSync(join(folder, 'state.db'));
    refused(folder).toThrow('cannot be opened');
    const foreign = newDirectory();
    writeFileSync(
      join(foreign, 'state.db'),
      'no database at all, but long enough to be read as one'.repeat(20),
    );
    refused(foreign).toThrow('not a database');
    const later = newDirectory();
    const database = openDatabase(later);
    database.pragma('user_version = 1000');
    database.close();
    refused(later).toThrow('a newer davgate');
  });
});
