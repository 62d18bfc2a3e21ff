import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiError } from '../../../../src/api/errors.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

/** Longer than a cached answer is served without the change feed. */
const LONG_MS = 60_000;

async function open(writeBack: boolean): Promise<void> {
  remote = new MemoryRemote();
  remote.putFolder(at('/f'));
  remote.putFile(at('/f/old'), 'v1');
  remote.putFolder(at('/cold'));
  remote.putFile(at('/cold/x'), 'x');
  drive = await MemoryDrive.open(remote, { writeBack });
  await drive.files.list(at('/'));
  await drive.files.list(at('/f'));
  await drive.text(at('/f/old'));
}

async function leave(failure: 'offline' | 'unauthorized' | 'foreign'): Promise<void> {
  remote.goAway(failure);
  while (drive.files.status().isFeedAlive) await turn();
  await drive.clock.advance(LONG_MS);
}

async function comeBack(): Promise<void> {
  remote.back();
  await drive.clock.during(drive.untilAlive());
}

afterEach(() => drive.close());

describe.each([
  ['offline', 'offline'],
  ['unauthorized', 'unauthorized'],
  // An answer that another server gave, such as a captive portal.
  ['foreign', 'intercepted'],
] as const)('with a journal, while the service is away (%s)', (failure, fault) => {
  beforeEach(async () => {
    await open(true);
    await leave(failure);
  });

  test('writes to a known folder are acknowledged, read and listed while the service is away, and land when it is back', async () => {
    for (const name of ['/f/new', '/f/newer', '/f/old']) await drive.put(at(name), `text of ${name}`);
    await turn(20);
    expect(await drive.text(at('/f/new'))).toBe('text of /f/new');
    expect(await drive.text(at('/f/old'))).toBe('text of /f/old');
    expect(await drive.names(at('/f'))).toEqual(['new', 'newer', 'old']);
    await comeBack();
    await drive.clock.during(drive.untilLanded());
    expect([remote.text(at('/f/new')), remote.text(at('/f/old'))]).toEqual([
      'text of /f/new',
      'text of /f/old',
    ]);
    expect(remote.paths.filter((path) => path.includes('conflicted copy'))).toEqual([]);
  });

  test('a write during an outage to a name taken elsewhere is kept beside the other file', async () => {
    await drive.put(at('/f/new'), 'ours');
    remote.putFile(at('/f/new'), 'theirs');
    await comeBack();
    await drive.clock.during(drive.untilLanded());
    expect(remote.text(at('/f/new'))).toBe('theirs');
    const [copy] = remote.paths.filter((path) => path.includes('conflicted copy'));
    expect(remote.text(at(copy ?? '/'))).toBe('ours');
  });

  test(`writes to an unknown folder are refused as ${fault} while the service is away`, async () => {
    expect(await faultOf(drive.put(at('/cold/y'), 'y'))).toBe(fault);
  });
});

describe.each([true, false])('while the service is away (journal: %s)', (writeBack) => {
  beforeEach(async () => {
    await open(writeBack);
    await leave('offline');
  });

  test('folders and files that were known are listed and read while the service is away', async () => {
    expect(await drive.names(at('/f'))).toEqual(['old']);
    expect(await drive.text(at('/f/old'))).toBe('v1');
  });

  test('a folder that was missing before an outage is not reported as missing', async () => {
    expect(await faultOf(drive.files.list(at('/nowhere')))).toBe('offline');
  });

  test('changes made elsewhere during an outage are visible after it', async () => {
    await drive.names(at('/f'));
    remote.putFile(at('/f/old'), 'v2');
    remote.putFile(at('/f/other'), 'other');
    await comeBack();
    expect(await drive.names(at('/f'))).toEqual(['old', 'other']);
    expect(await drive.text(at('/f/old'))).toBe('v2');
  });
});

describe('a change whose answer was lost as the service went away', () => {
  beforeEach(async () => {
    await open(false);
    remote.failNext('remove', 'offline', { late: true });
    expect(await faultOf(drive.files.remove(at('/f/old'), { recoverable: true }))).toBe('offline');
    await leave('offline');
  });

  test('a change whose answer was lost leaves its folder unlisted during the outage', async () => {
    expect(await faultOf(drive.names(at('/f')))).toBe('offline');
    expect(await drive.names(at('/'))).toEqual(['cold', 'f']);
  });

  test('a change whose answer was lost is visible after the outage', async () => {
    await comeBack();
    expect(await drive.names(at('/f'))).toEqual([]);
  });
});

test('a change that never reached the service leaves its folder as it was known', async () => {
  await open(false);
  const unsent = new ApiError('offline', 'the connection was refused', { isUndone: true });
  remote.failNext('remove', unsent);
  expect(await faultOf(drive.files.remove(at('/f/old'), { recoverable: true }))).toBe('offline');
  await leave('offline');
  expect(await drive.names(at('/f'))).toEqual(['old']);
});

test('with a journal, a name that the known listing lacks is free during an outage', async () => {
  await open(true);
  await leave('offline');
  expect(await drive.files.stat(at('/f/unknown'))).toBeUndefined();
  expect(await faultOf(drive.files.stat(at('/cold/unknown')))).toBe('offline');
});

test('without a journal, a name that was missing is not reported as missing during an outage', async () => {
  await open(false);
  await leave('offline');
  expect(await faultOf(drive.files.stat(at('/f/unknown')))).toBe('offline');
});

test('during an outage one request every few seconds probes the service, and the others do not wait for it', async () => {
  await open(true);
  await leave('offline');
  await drive.names(at('/f'));
  const asked = async () => (await drive.questionsOf(() => drive.names(at('/f')))).length;
  expect(await asked()).toBe(0);
  await drive.clock.advance(5_000);
  expect(await asked()).toBeGreaterThan(0);
  expect(await asked()).toBe(0);
  await drive.clock.advance(5_000);
  remote.putFile(at('/f/other'), 'other');
  remote.back();
  await drive.names(at('/f'));
  await turn(20);
  expect(await drive.names(at('/f'))).toEqual(['old', 'other']);
});

test('a write with a stale If-Match is refused before it is acknowledged, even before the change feed reports the change', async () => {
  await open(true);
  const { rev } = await drive.fileAt(at('/f/old'));
  remote.holdFeed();
  remote.putFile(at('/f/old'), 'theirs');
  expect(await faultOf(drive.put(at('/f/old'), 'ours', { if: 'rev', rev }))).toBe('changed');
  expect(drive.files.depth().files).toBe(0);
  expect(remote.text(at('/f/old'))).toBe('theirs');
  remote.releaseFeed();
});

test('during an outage a conditional write is acknowledged by the known version', async () => {
  await open(true);
  const { rev } = await drive.fileAt(at('/f/old'));
  await leave('offline');
  await drive.put(at('/f/old'), 'ours', { if: 'rev', rev });
  expect(await drive.text(at('/f/old'))).toBe('ours');
  expect(await faultOf(drive.put(at('/f/old'), 'again', { if: 'rev', rev }))).toBe('changed');
  await comeBack();
  await drive.clock.during(drive.untilLanded());
  expect(remote.text(at('/f/old'))).toBe('ours');
});
