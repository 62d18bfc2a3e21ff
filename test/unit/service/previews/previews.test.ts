import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { Previews } from '../../../../src/service/previews/previews.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { temporaryDirectory } from '../../../support/program.ts';

const PROCESSES = new URL('../../../support/render-processes/', import.meta.url);
const STAYS = new AbortController().signal;

let opened: Previews | undefined;
afterEach(() => opened?.close());

function previewsWith(program: string, clock = new ManualClock()): Previews {
  opened = new Previews(clock, new URL(program, PROCESSES));
  return opened;
}

/** Returns a function that requests the view of a text, and the texts that were loaded for it. */
function asking(previews: Previews) {
  const loads: string[] = [];
  const ask = (key: string, signal = STAYS, line?: string) =>
    previews.text.of(
      key,
      async () => {
        loads.push(key);
        return { name: key, text: '' };
      },
      { signal, line },
    );
  return { ask, loads };
}

/** Returns the id of the process that rendered a view. */
function pidIn(view: Awaited<ReturnType<Previews['text']['of']>>): number {
  if (typeof view === 'string') throw new Error(`there is no view: ${view}`);
  return Number(view.markup);
}

describe('a render process that hangs', () => {
  test('a render process that hangs is killed after 10 s, and its revision is not tried again', async () => {
    const clock = new ManualClock();
    const { ask, loads } = asking(previewsWith('stuck.mjs', clock));
    const asked = ask('rev-1');
    await clock.untilSleeping();
    await clock.advance(10_000);
    expect(await asked).toBe('failed');
    expect(await ask('rev-1')).toBe('failed');
    expect(loads).toEqual(['rev-1']);
  });

  test('a render process that hangs leaves 32 tasks waiting, and the next one is refused as busy', async () => {
    const clock = new ManualClock();
    const { ask, loads } = asking(previewsWith('stuck.mjs', clock));
    const goes = new AbortController();
    const asked = Array.from({ length: 33 }, (_, index) => ask(`rev-${index}`, goes.signal));
    const ended = Promise.allSettled(asked);
    await clock.untilSleeping();
    expect(await ask('one-more')).toBe('busy');
    goes.abort(new Error('gone'));
    expect((await ended).map(({ status }) => status)).toEqual(Array(33).fill('rejected'));
    // A revision that was refused as busy is tried again when there is room.
    const again = ask('one-more');
    await clock.advance(10_000);
    await eventually(() => expect(loads).toEqual(['rev-0', 'one-more']));
    await clock.untilSleeping();
    await clock.advance(10_000);
    expect(await again).toBe('failed');
  });
});

describe('a render process that crashes', () => {
  test('a render process that crashes fails its task for good, and the next task gets a new process', async () => {
    const { ask, loads } = asking(previewsWith('crashing.mjs'));
    const first = await ask('a');
    expect(first).toMatchObject({ form: 'plain' });
    expect(await ask('b')).toEqual(first);
    expect(await ask('crash')).toBe('failed');
    expect(await ask('crash')).toBe('failed');
    expect(loads).toEqual(['a', 'b', 'crash']);
    const after = await ask('c');
    expect(after).toMatchObject({ form: 'plain' });
    expect(after).not.toEqual(first);
  });
});

describe('tasks of a line', () => {
  test('tasks of two lines take turns, and each line keeps its order', async () => {
    const { ask, loads } = asking(previewsWith('crashing.mjs'));
    const first = ['a1', 'a2', 'a3'].map((key) => ask(key, STAYS, 'a'));
    const second = ['b1', 'b2'].map((key) => ask(key, STAYS, 'b'));
    await Promise.all([...first, ...second]);
    expect(loads).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  });

  test('1000 tasks wait in a line without filling the queue, and those of callers who leave make room', async () => {
    const clock = new ManualClock();
    const { ask, loads } = asking(previewsWith('stuck.mjs', clock));
    const goes = new AbortController();
    const asked = Array.from({ length: 1001 }, (_, index) => ask(`rev-${index}`, goes.signal, 'line'));
    const ended = Promise.allSettled(asked);
    await clock.untilSleeping();
    expect(await ask('in-line', STAYS, 'line')).toBe('busy');
    const other = ask('other');
    goes.abort(new Error('gone'));
    expect(new Set((await ended).map(({ status }) => status))).toEqual(new Set(['rejected']));
    const inLine = ask('in-line', STAYS, 'line');
    await clock.advance(10_000);
    for (const waited of [other, inLine]) {
      await clock.untilSleeping();
      await clock.advance(10_000);
      expect(await waited).toBe('failed');
    }
    expect(loads).toEqual(['rev-0', 'other', 'in-line']);
  });
});

describe('a render process that the system kills', () => {
  test('a render process killed while idle costs the next texts nothing, whether its end is known yet or not', async () => {
    const { ask } = asking(previewsWith('crashing.mjs'));
    const kill = async (key: string) => {
      const pid = pidIn(await ask(key));
      process.kill(pid, 'SIGKILL');
      return pid;
    };
    const first = await kill('a');
    // Its end is not known yet: no event has come since the kill.
    const second = await kill('b');
    await eventually(() => expect(() => process.kill(second, 0)).toThrow('ESRCH'));
    const third = pidIn(await ask('c'));
    expect(new Set([first, second, third]).size).toBe(3);
  });

  test('a task whose two render processes are killed is busy for a minute, and is then tried again', async () => {
    await expectTriedOncePerMinute('crashing.mjs', 'kill');
  });

  test('a task whose render process is killed is rendered by a fresh one', async () => {
    const folder = await temporaryDirectory();
    try {
      const program = join(folder.path, 'killed-once.mjs');
      await copyFile(new URL('killed-once.mjs', PROCESSES), program);
      const { ask, loads } = asking(previewsWith(pathToFileURL(program).href));
      const asked = ask('rev');
      const killed = join(folder.path, 'pid');
      await eventually(async () => process.kill(Number(await readFile(killed, 'utf8')), 'SIGKILL'));
      expect(await asked).toMatchObject({ form: 'plain' });
      expect(loads).toEqual(['rev']);
    } finally {
      await folder.remove();
    }
  });
});

test.each([
  ['ends at its start', 'missing.mjs'],
  ['cannot be started', 'data:text/javascript,'],
])('a task whose render process %s is busy for a minute, and is then tried again', async (_, program) => {
  await expectTriedOncePerMinute(program, 'rev');
});

async function expectTriedOncePerMinute(program: string, key: string): Promise<void> {
  const clock = new ManualClock();
  const { ask, loads } = asking(previewsWith(program, clock));
  expect(await ask(key)).toBe('busy');
  await clock.advance(59_999);
  expect(await ask(key)).toBe('busy');
  expect(loads).toEqual([key]);
  await clock.advance(1);
  expect(await ask(key)).toBe('busy');
  expect(loads).toEqual([key, key]);
}

test('the start of a render process does not count toward the 10 s of its first task', async () => {
  const folder = await temporaryDirectory();
  try {
    const program = join(folder.path, 'late.mjs');
    await copyFile(new URL('late.mjs', PROCESSES), program);
    const clock = new ManualClock();
    const { ask, loads } = asking(previewsWith(pathToFileURL(program).href, clock));
    const asked = ask('rev');
    await eventually(() => expect(loads).toEqual(['rev']));
    await clock.advance(10_000);
    await writeFile(join(folder.path, 'go'), '');
    expect(await asked).toMatchObject({ form: 'plain' });
  } finally {
    await folder.remove();
  }
});

test('concurrent requests for a revision render it once, and the view is cached', async () => {
  const { ask, loads } = asking(previewsWith('crashing.mjs'));
  const views = await Promise.all(Array.from({ length: 8 }, () => ask('rev')));
  expect(new Set(views).size).toBe(1);
  expect(await ask('rev')).toBe(views[0]);
  expect(loads).toEqual(['rev']);
});

test('a render process without a task ends after a minute', async () => {
  const clock = new ManualClock();
  const { ask } = asking(previewsWith('crashing.mjs', clock));
  const pid = pidIn(await ask('a'));
  expect(() => process.kill(pid, 0)).not.toThrow();
  await clock.untilSleeping();
  await clock.advance(60_000);
  await eventually(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'));
});
