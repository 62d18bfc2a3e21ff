import { expect, test } from 'vitest';
import { type SharedDrive, userDrives } from '../../../src/app/user-drives.ts';
import type { Grant } from '../../../src/config/grant.ts';
import { Announcer } from '../../../src/drive/changes.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryFiles } from '../../support/memory-files.ts';
import { memoryState } from '../../support/memory-state.ts';
import { NO_HISTORY } from '../../support/no-history.ts';

function sharedDrive({ isReadOnly = false, keepsDeleted = true } = {}): SharedDrive {
  const state = memoryState();
  const files = new MemoryFiles({ clock: new ManualClock(), properties: state.properties });
  const more = { search: async () => ({ entries: [] }), thumbnail: async () => new Uint8Array() };
  return {
    files: Object.assign(files, more),
    state,
    history: NO_HISTORY,
    changes: new Announcer(),
    catchUp: undefined,
    isReadOnly,
    keepsDeleted,
  };
}

const one = sharedDrive();
const drives = new Map([
  ['one', one],
  ['closed', sharedDrive({ isReadOnly: true, keepsDeleted: false })],
]);

function placesOf(driveOf: ReturnType<typeof userDrives>, ...grants: readonly Grant[]) {
  return driveOf({ name: 'ann', passwordHash: '', grants });
}

test('users with the same rights share one object, and a read-only user never gets that of a writer', () => {
  const driveOf = userDrives(drives);
  const writer = placesOf(driveOf, { drive: 'one' });
  expect(placesOf(driveOf, { drive: 'one' })).toBe(writer);
  expect(driveOf(undefined)).toBe(writer);
  expect(writer.files).toBe(one.files);
  const reader = placesOf(driveOf, { drive: 'one', isReadOnly: true });
  expect(reader).not.toBe(writer);
  expect(reader.places).toEqual([{ path: '/', isReadOnly: true, keepsDeleted: true }]);
});

test.each<readonly [string, Omit<Grant, 'drive'>]>([
  ['the whole drive', {}],
  ['a root folder', { root: '/a' }],
  ['a quota', { root: '/a', quotaBytes: 1_000 }],
  ['rights in single folders', { folders: [{ path: '/a', right: 'hidden' }] }],
  ['a drive beside others', { folder: 'One' }],
])('a user with %s waits for what other gateways have acknowledged', async (_, grant) => {
  let reads = 0;
  const shared = { ...sharedDrive(), catchUp: async () => void reads++ };
  const { catchUp } = placesOf(userDrives(new Map([['shared', shared]])), { drive: 'shared', ...grant });
  await catchUp?.();
  expect(reads).toBe(1);
});

test('a read-only drive is read-only for each of its users', () => {
  const { places, isReadOnly } = placesOf(userDrives(drives), { drive: 'closed', isReadOnly: false });
  expect(places).toEqual([{ path: '/', isReadOnly: true, keepsDeleted: false }]);
  expect(isReadOnly).toBeDefined();
});

test('a drive with a folder appears in that folder, and a drive without one at the root', () => {
  const places = (...grants: readonly Grant[]) => placesOf(userDrives(drives), ...grants).places;
  expect(places({ drive: 'one', folder: 'one' })).toEqual([
    { path: '/one', isReadOnly: false, keepsDeleted: true },
  ]);
  expect(places({ drive: 'one', folder: 'one' }, { drive: 'closed', folder: 'closed' })).toEqual([
    { path: '/one', isReadOnly: false, keepsDeleted: true },
    { path: '/closed', isReadOnly: true, keepsDeleted: false },
  ]);
  expect(places({ drive: 'one', root: '/Ann' })).toEqual([
    { path: '/', isReadOnly: false, keepsDeleted: true },
  ]);
});
