import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { StateUnwritable } from '../../../src/state/errors.ts';
import type { Path } from '../../../src/util/path.ts';
import { property } from '../../contract/properties.contract.ts';
import { MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

const BLUE = property('colour', 'blue');
const SET_MS = Date.UTC(2001, 0, 1);

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.putFile(at('/source'), 'text');
  remote.putFile(at('/tree/below/leaf'), 'leaf');
  drive = await MemoryDrive.open(remote);
  for (const path of [at('/source'), at('/tree'), at('/tree/below/leaf')]) await colour(path);
});

afterEach(() => drive.close());

async function colour(path: Path, value = BLUE): Promise<void> {
  const entry = await drive.files.stat(path);
  if (!entry) throw new Error(`nothing is at ${path}`);
  await drive.state.properties.change(entry.id, [{ set: value }]);
}

async function propertiesAt(path: Path): Promise<unknown> {
  const entry = await drive.files.stat(path);
  if (!entry) return `nothing is at ${path}`;
  return (await drive.state.properties.of([entry.id])).get(entry.id) ?? [];
}

const copy = (from: Path, to: Path) =>
  drive.files.copy(from, to, { overwrite: true, shallow: false }).then(
    () => 'done',
    (error: Error) => error,
  );

/** Kills davgate after the service has executed the next `call` and before the answer arrives. */
async function killAfter(call: 'copy' | 'move', work: () => Promise<unknown>): Promise<void> {
  const gate = remote.holdNext(call, 'end');
  work().catch(() => {});
  await gate.reached;
  drive.kill();
  await drive.start();
}

async function untilNothingIsLeft(): Promise<void> {
  while ((await drive.state.intents.ids()).length > 0) {
    await drive.clock.advance(10_000);
    await turn(10);
  }
}

describe('COPY interrupted by a kill', () => {
  test('a file COPY interrupted by a kill gives the copy its properties and its modification time after the restart', async () => {
    await drive.files.setModified(at('/source'), SET_MS);
    await killAfter('copy', () => copy(at('/source'), at('/copy')));
    expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
    expect(await drive.files.stat(at('/copy'))).toMatchObject({ modifiedMs: SET_MS });
    await untilNothingIsLeft();
  });

  test('a folder COPY interrupted by a kill gives the copies below it their properties after the restart', async () => {
    await killAfter('copy', () => copy(at('/tree'), at('/copy')));
    expect(await propertiesAt(at('/copy/below/leaf'))).toEqual([BLUE]);
    expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
    expect(await propertiesAt(at('/copy/below'))).toEqual([]);
    await untilNothingIsLeft();
  });

  test("a COPY onto an existing file interrupted by a kill leaves the source's content and properties at the target", async () => {
    remote.putFile(at('/copy'), 'old');
    await drive.feedTold();
    await colour(at('/copy'), property('colour', 'red'));
    await killAfter('copy', () => copy(at('/source'), at('/copy')));
    await untilNothingIsLeft();
    expect(await drive.text(at('/copy'))).toBe('text');
    expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
  });

  test('a folder COPY interrupted by a kill copies the local files in the folder after the restart', async () => {
    await drive.write(at('/tree/._leaf'), 'fork');
    await killAfter('copy', () => copy(at('/tree'), at('/copy')));
    expect(await drive.text(at('/copy/._leaf'))).toBe('fork');
  });
});

test('a MOVE killed after the service has executed it moves the local companion file after the restart', async () => {
  await drive.write(at('/._source'), 'fork');
  await killAfter('move', () => drive.files.move(at('/source'), at('/moved'), { overwrite: true }));
  expect(await propertiesAt(at('/moved'))).toEqual([BLUE]);
  expect(await drive.text(at('/._moved'))).toBe('fork');
  expect(await drive.files.stat(at('/._source'))).toBeUndefined();
});

test('a COPY that the service finishes only after the restart gives the copy its properties then', async () => {
  const gate = remote.holdNext('copy', 'begin');
  void copy(at('/source'), at('/copy'));
  await gate.reached;
  drive.kill();
  await drive.start();
  expect(await drive.files.stat(at('/copy'))).toBeUndefined();
  gate.release();
  await drive.feedTold();
  await untilNothingIsLeft();
  expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
});

test('a COPY that the service never executed gives no properties to a file created at its target later', async () => {
  const gate = remote.holdNext('copy', 'begin');
  void copy(at('/source'), at('/copy'));
  await gate.reached;
  drive.kill();
  await drive.start();
  await untilNothingIsLeft();
  remote.putFile(at('/copy'), 'text');
  await drive.feedTold();
  expect(await propertiesAt(at('/copy'))).toEqual([]);
});

test('a different file put at the target of an interrupted COPY does not get the properties of the source', async () => {
  const gate = remote.holdNext('copy', 'begin');
  void copy(at('/source'), at('/copy'));
  await gate.reached;
  drive.kill();
  remote.putFile(at('/copy'), 'other content');
  await drive.start();
  await untilNothingIsLeft();
  expect(await propertiesAt(at('/copy'))).toEqual([]);
});

test('a COPY whose answer is lost fails with offline, and the copy gets its properties afterwards', async () => {
  remote.failNext('copy', 'offline', { late: true });
  expect(await copy(at('/source'), at('/copy'))).toMatchObject({ fault: 'offline' });
  await untilNothingIsLeft();
  await drive.feedTold();
  expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
});

test('a COPY whose intent cannot be read does not stop another COPY from getting its properties', async () => {
  const read = drive.state.intents.get.bind(drive.state.intents);
  vi.spyOn(drive.state.intents, 'get').mockImplementation(async (id) => {
    const intent = await read(id);
    if (intent?.to === at('/first')) throw new Error('the first one is damaged');
    return intent;
  });
  for (const path of [at('/first'), at('/second')]) {
    remote.failNext('copy', 'offline', { late: true });
    await copy(at('/source'), path);
  }
  const second = remote.entryAt(at('/second'))?.id ?? '';
  for (let tries = 0; tries < 100 && (await drive.state.properties.of([second])).size === 0; tries++) {
    await drive.clock.advance(10_000);
    await turn(10);
  }
  expect((await drive.state.properties.of([second])).get(second)).toEqual([BLUE]);
});

test('a COPY refused by the service for lack of space leaves no intent behind', async () => {
  remote.failNext('copy', 'insufficient-space');
  expect(await copy(at('/source'), at('/copy'))).toMatchObject({ fault: 'no-space' });
  expect(await drive.state.intents.ids()).toEqual([]);
});

test('a COPY keeps the properties of a source that is deleted while the service copies', async () => {
  const gate = remote.holdNext('copy', 'end');
  const copying = copy(at('/source'), at('/copy'));
  await gate.reached;
  await drive.files.remove(at('/source'), { recoverable: false });
  gate.release();
  expect(await copying).toBe('done');
  expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
});

describe('a COPY while the state store is full', () => {
  const full = new StateUnwritable('state', 'the disk is full; free some space', undefined);

  test('a COPY whose intent cannot be stored fails before the service is called', async () => {
    vi.spyOn(drive.state.intents, 'note').mockRejectedValueOnce(full);
    expect(await copy(at('/source'), at('/copy'))).toBe(full);
    expect(remote.count('copy')).toBe(0);
    expect(await drive.files.stat(at('/copy'))).toBeUndefined();
  });

  test('a COPY whose properties cannot be stored fails, and the copy gets them once the store has room', async () => {
    vi.spyOn(drive.state.properties, 'change').mockRejectedValueOnce(full);
    expect(await copy(at('/source'), at('/copy'))).toBe(full);
    await untilNothingIsLeft();
    expect(await propertiesAt(at('/copy'))).toEqual([BLUE]);
  });

  test('properties stored late after a COPY do not replace those a client has set on the copy meanwhile', async () => {
    vi.spyOn(drive.state.properties, 'change').mockRejectedValueOnce(full);
    expect(await copy(at('/source'), at('/copy'))).toBe(full);
    const green = property('colour', 'green');
    await colour(at('/copy'), green);
    await untilNothingIsLeft();
    expect(await propertiesAt(at('/copy'))).toEqual([green]);
  });
});

test('a MOVE whose companion file cannot be moved succeeds, and the companion is moved later', async () => {
  await drive.write(at('/._source'), 'fork');
  vi.spyOn(drive.state.localFiles, 'move').mockRejectedValue(new Error('the disk is full'));
  await drive.files.move(at('/source'), at('/moved'), { overwrite: true });
  vi.restoreAllMocks();
  await untilNothingIsLeft();
  expect(await drive.text(at('/._moved'))).toBe('fork');
});
