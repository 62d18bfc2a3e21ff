import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError, type ApiFailure } from '../../../../src/api/errors.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

/** The hidden file `a` below a folder, which no replacement needs. */
const STRAY = at('/d/.davgate-waiting-1~a');

let remote: MemoryRemote;
let drive: MemoryDrive;

beforeEach(() => {
  remote = new MemoryRemote();
  remote.putFolder(at('/d'));
  remote.putFile(STRAY, 'old');
});

afterEach(() => drive.close());

async function open(): Promise<void> {
  drive = await MemoryDrive.open(remote);
}

/** Lists the folder, and waits until davgate has looked at the hidden file once more. */
async function lookAgain(folder = '/d'): Promise<void> {
  await drive.names(at(folder)).catch(() => {});
  await turn(10);
  await drive.clock.advance(61_000);
  await turn(10);
}

test('a hidden file that no replacement needs gets its name back', async () => {
  await open();
  await lookAgain();
  expect(remote.paths).toEqual(['/d', '/d/a']);
  await turn(10);
  expect(await drive.text(at('/d/a'))).toBe('old');
});

test('a hidden file whose name is taken gets a free name beside it', async () => {
  remote.putFile(at('/d/a'), 'new');
  await open();
  await lookAgain();
  expect(remote.paths).toEqual(['/d', '/d/a', '/d/a (1)']);
  expect(remote.text(at('/d/a'))).toBe('new');
});

test('a hidden file is recovered after an outage of the service', async () => {
  await open();
  await drive.names(at('/d'));
  remote.goAway('offline');
  await lookAgain();
  expect(remote.paths).toEqual(['/d', STRAY]);
  remote.back();
  await lookAgain();
  expect(remote.paths).toEqual(['/d', '/d/a']);
});

test('a hidden file that another gateway gives its name back at the same moment is no reason for a warning', async () => {
  await open();
  remote.failNext('move', 'not-found');
  await lookAgain();
  expect(drive.warnings).toEqual([]);
});

test.each(['no-permission', 'locked', 'insufficient-space'] as const)(
  'a folder with a hidden file that may not be renamed (%s) is listed, walked, copied, moved and deleted, and a warning says so once',
  async (failure) => {
    await open();
    const move = refuseMoves(failure);
    for (let round = 0; round < 3; round++) {
      await lookAgain();
      expect(await drive.files.stat(at('/d/a'))).toBeUndefined();
      expect(await names('/d')).toEqual([]);
    }
    expect(drive.warnings.filter((event) => event.includes('hidden'))).toHaveLength(1);
    await drive.files.copy(at('/d'), at('/e'), { overwrite: false, shallow: false });
    await drive.files.remove(at('/e'), { recoverable: true });
    move.mockRestore();
    await drive.files.move(at('/d'), at('/f'), { overwrite: false });
    for (let round = 0; round < 2; round++) await lookAgain('/f');
    expect(remote.paths).toEqual(['/f', '/f/a']);
  },
);

test('a hidden file that may not be renamed gets its name back an hour later', async () => {
  await open();
  const move = refuseMoves('locked');
  await lookAgain();
  move.mockRestore();
  for (let minute = 0; minute < 58; minute++) await lookAgain();
  expect(remote.paths).toEqual(['/d', STRAY]);
  for (let minute = 0; minute < 5; minute++) await lookAgain();
  expect(remote.paths).toEqual(['/d', '/d/a']);
});

test('after a restart, a folder with a hidden file that may not be renamed is listed', async () => {
  await open();
  refuseMoves('no-permission');
  await lookAgain();
  await drive.end();
  await drive.start();
  expect(await names('/d')).toEqual([]);
});

function refuseMoves(failure: ApiFailure) {
  return vi.spyOn(remote, 'move').mockRejectedValue(new ApiError(failure, 'the service refuses'));
}

async function names(folder: string): Promise<string[]> {
  for await (const { children } of drive.files.walk(at(folder))) return children.map(({ name }) => name);
  return [];
}
