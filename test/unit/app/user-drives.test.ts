import { describe, expect, test } from 'vitest';
import { type SharedDrive, userDrives } from '../../../src/app/user-drives.ts';
import type { Grant } from '../../../src/config/grant.ts';
import { Announcer, type DriveChange } from '../../../src/drive/changes.ts';
import { pathOf, ROOT } from '../../../src/util/path.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryFiles } from '../../support/memory-files.ts';
import { memoryState } from '../../support/memory-state.ts';
import { NO_HISTORY } from '../../support/no-history.ts';

function memoryFiles() {
  const more = { search: async () => ({ entries: [] }), thumbnail: async () => new Uint8Array() };
  return Object.assign(new MemoryFiles({ clock: new ManualClock() }), more);
}

function sharedDrive(more: Partial<SharedDrive> = {}): SharedDrive {
  return {
    files: memoryFiles(),
    state: memoryState(),
    history: NO_HISTORY,
    changes: new Announcer(),
    catchUp: undefined,
    isReadOnly: false,
    keepsDeleted: true,
    ...more,
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
  expect(isReadOnly?.(ROOT)).toBe(true);
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

describe('a limit for the remembered drives', () => {
  const ROUNDS = 1_500;

  /** Returns users of a drive that shows its past, how many follow it now, and how often it was asked for what is deleted. */
  function followed() {
    const changes = new Announcer();
    const files = memoryFiles();
    let [followers, questions] = [0, 0];
    const counted = sharedDrive({
      files,
      history: {
        ...NO_HISTORY,
        async trash() {
          questions += 1;
          return { items: [], leftOut: 0 };
        },
      },
      changes: {
        follow(listener) {
          const unfollow = changes.follow(listener);
          followers += 1;
          return () => {
            followers -= 1;
            unfollow();
          };
        },
      },
    });
    const driveOf = userDrives(new Map([['one', counted]]), { hasHistoryFolders: true });
    const withQuota = (quotaBytes: number) => placesOf(driveOf, { drive: 'one', root: '/home', quotaBytes });
    /** As many users as it takes for davgate to forget the earlier ones. */
    const manyOthers = (from: number) => {
      for (let round = 0; round < ROUNDS; round++) withQuota(from + round);
    };
    return { files, changes, withQuota, manyOthers, followers: () => followers, questions: () => questions };
  }

  test('users who get other rights with every login add to those who follow the drive up to a limit only', () => {
    const { manyOthers, followers } = followed();
    manyOthers(1_000_000);
    const most = followers();
    manyOthers(2_000_000);
    manyOthers(3_000_000);
    expect(followers()).toBe(most);
    expect(most).toBeLessThan(3 * ROUNDS);
  });

  test('a forgotten drive that is still used tells of changes, makes its root folder again and asks for deleted files each time', async () => {
    const { files, changes, withQuota, manyOthers, questions } = followed();
    const root = pathOf(['home']);
    const drive = withQuota(1_000_000);
    const past = () => drive.webdav.files.list(pathOf(['.trash']));
    const told: DriveChange[] = [];
    drive.changes.follow((change) => void told.push(change));
    await past();
    await past();
    expect(questions()).toBe(1);
    manyOthers(2_000_000);
    expect(withQuota(1_000_000)).not.toBe(drive);
    expect(withQuota(1_000_000).rights).toBe(drive.rights);
    await files.remove(root, { recoverable: true });
    changes.entry(root, { isTree: true });
    expect(told).toEqual([{ kind: 'entry', path: ROOT, isTree: true }]);
    await past();
    expect(files.paths()).toEqual(['/home/']);
    await past();
    expect(questions()).toBe(3);
  });

  test('a drive that is in use all the time is not forgotten', () => {
    const { withQuota } = followed();
    const drive = withQuota(1);
    for (let round = 0; round < ROUNDS; round++) {
      withQuota(1_000 + round);
      expect(withQuota(1)).toBe(drive);
    }
  });
});
