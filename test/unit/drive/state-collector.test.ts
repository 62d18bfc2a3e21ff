import { afterEach, beforeEach, expect, test } from 'vitest';
import { ROOT } from '../../../src/util/path.ts';
import { MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  for (const name of ['a', 'b', 'c']) remote.putFile(at(`/Docs/${name}`), name);
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

const property = { set: { namespace: 'n', name: 'p', xml: '<p/>' } };

/** Gives each of the three files a property and a time. */
async function mark(): Promise<void> {
  for (const name of ['a', 'b', 'c']) {
    const { id } = await drive.fileAt(at(`/Docs/${name}`));
    await drive.state.properties.change(id, [property]);
    await drive.files.setModified(at(`/Docs/${name}`), 1_000_000);
  }
}

async function keptIds(): Promise<number> {
  const { properties, times } = drive.state;
  return (await properties.ids()).length + (await times.ids()).length;
}

async function restart(): Promise<void> {
  await drive.end();
  await drive.start();
}

/** Advances the clock by `ms` in steps of `stepMs`, so that pending calls run in between. */
async function pass(ms: number, stepMs: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    await drive.clock.advance(stepMs);
    await turn(10);
  }
}

test('DELETE of an uncached folder forgets the properties and times of everything below it', async () => {
  await mark();
  await restart();
  await drive.files.remove(at('/Docs'), { recoverable: false });
  expect(await keptIds()).toBe(6);
  await pass(2_000, 100);
  expect(await keptIds()).toBe(0);
});

test('properties and times of files deleted elsewhere are forgotten after one call for each file', async () => {
  await mark();
  await drive.files.list(at('/Docs'));
  const before = remote.count('locate');
  remote.delete(at('/Docs'));
  await drive.feedTold();
  await pass(2_000, 100);
  expect(await keptIds()).toBe(0);
  expect(remote.count('locate') - before).toBe(3);
});

test('files moved elsewhere keep their properties and times', async () => {
  await mark();
  await drive.files.list(at('/Docs'));
  remote.rename(at('/Docs'), at('/Moved'));
  await drive.feedTold();
  await pass(2_000, 100);
  expect(await keptIds()).toBe(6);
  expect((await drive.fileAt(at('/Moved/a'))).modifiedMs).toBe(1_000_000);
});

test("files moved out of the drive's root keep their properties and times, after one call for each file", async () => {
  await mark();
  await drive.files.list(at('/Docs'));
  remote.moveOut(at('/Docs'));
  await drive.feedTold();
  const before = remote.count('locate');
  await pass(2_000, 100);
  expect(remote.count('locate') - before).toBe(3);
  expect(await keptIds()).toBe(6);
});

test('the daily sweep forgets files deleted while davgate was stopped and keeps files moved meanwhile', async () => {
  await mark();
  await drive.end();
  remote.rename(at('/Docs/a'), at('/kept'));
  remote.delete(at('/Docs'));
  await drive.start();
  await pass(24 * 3_600_000, 3_600_000);
  await pass(60_000, 5_000);
  expect(await keptIds()).toBe(2);
  expect(await drive.names(ROOT)).toEqual(['kept']);
});

test('no properties or times are forgotten while the service cannot be reached', async () => {
  await mark();
  await drive.files.list(at('/Docs'));
  for (let count = 0; count < 3; count++) remote.failNext('locate', 'offline');
  remote.delete(at('/Docs'));
  await drive.feedTold();
  await pass(2_000, 100);
  expect(await keptIds()).toBe(6);
  await pass(240_000, 10_000);
  await pass(2_000, 100);
  expect(await keptIds()).toBe(0);
});

test('DELETE of a local file, or of its folder, forgets its properties', async () => {
  for (const path of [at('/Docs/._a'), at('/Docs/.DS_Store')])
    await drive.state.properties.change((await drive.put(path, 'x')).id, [property]);
  await drive.files.remove(at('/Docs/._a'), { recoverable: false });
  expect(await keptIds()).toBe(1);
  await drive.files.remove(at('/Docs'), { recoverable: false });
  expect(await keptIds()).toBe(0);
});
