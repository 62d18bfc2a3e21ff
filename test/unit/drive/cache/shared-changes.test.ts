import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Entry, FeedChange } from '../../../../src/api/remote.ts';
import type { MadeChange } from '../../../../src/drive/cache/recent-changes.ts';
import {
  feedEventText,
  RESET_EVENT_TEXT,
  SharedChanges,
} from '../../../../src/drive/cache/shared-changes.ts';
import { Freshness } from '../../../../src/drive/cache/tree-cache.ts';
import type { ChangeStream, StreamEvent, StreamPosition } from '../../../../src/state/change-stream.ts';
import { elapsedMs } from '../../../../src/util/clock.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { nameOf } from '../../../../src/util/path.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { turn } from '../../../support/memory-drive.ts';
import { at } from '../../../support/memory-remote.ts';

// Two gateways on a stream in memory. What a gateway does is what its cache is told.

class MemoryStream {
  readonly events: StreamEvent[] = [];
  isAway = false;
  isHanging = false;
  /** Number of the first events that are not there any more. */
  trimmed = 0;
  #lifetime = 1;
  #added = 0;

  /** Loses the last event. */
  loseLast(): void {
    this.events.pop();
  }

  get #end(): StreamPosition {
    const last = this.events.at(-1)?.position;
    return { number: last?.number ?? 0, nonce: last?.nonce ?? '0', lifetime: `${this.#lifetime}` };
  }

  #check(read: StreamPosition | undefined): void {
    const isThere =
      (read?.number ?? 0) === 0 || this.events[(read?.number ?? 0) - 1]?.position.nonce === read?.nonce;
    if (!isThere) this.#lifetime++;
  }

  of(gateway: string): ChangeStream {
    const unused = async () => {
      throw new Error('not used');
    };
    return {
      gateway,
      feed: { takeTurn: unused, endTurn: unused, cursor: unused, add: unused },
      add: async (text, read) => {
        if (this.isAway) throw new Error('Redis is away');
        this.#check(read);
        const before = this.#end;
        const position = { ...before, number: before.number + 1, nonce: `${++this.#added}` };
        this.events.push({ position, gateway, text });
        return { position, before };
      },
      after: async (read) => {
        if (this.isHanging) return new Promise(() => {});
        if (this.isAway) throw new Error('Redis is away');
        this.#check(read);
        const end = this.#end;
        const isLost = read !== undefined && (read.number < this.trimmed || read.lifetime !== end.lifetime);
        const events = this.events
          .slice(read === undefined ? this.events.length : Math.max(read.number, this.trimmed))
          .map(({ position, ...event }) => ({ ...event, position: { ...position, lifetime: end.lifetime } }));
        return { events, end, isLost, isFeedUp: true };
      },
    };
  }
}

interface Seen {
  readonly told: string[];
  readonly shared: SharedChanges;
}

/** Whether the caches cannot apply what the feed reports. */
let isFailing = false;
let clock: ManualClock;
let stream: MemoryStream;
let freshness: Freshness;
let one: Seen;
let other: Seen;

async function start(gateway: string): Promise<Seen> {
  const told: string[] = [];
  freshness = new Freshness(clock, 10_000);
  const deps = { stream: stream.of(gateway), freshness, clock, log: silentLog, everyMs: 1_000 };
  const shared = new SharedChanges(deps);
  await shared.start(
    {
      applyOther: ({ places }, { isCertain }) =>
        void told.push(`${places.map(({ path }) => path)} ${isCertain ? 'certain' : 'unknown'}`),
      async apply(changes) {
        if (isFailing) throw new Error('Redis is away');
        told.push(`feed ${changes.length}`);
      },
      adorn: ({ path }) => void told.push(`time ${path}`),
      reached() {},
      reset: () => void told.push('reset'),
    },
    { begin: (id) => void told.push(`replacing ${id}`), end: (id) => void told.push(`replaced ${id}`) },
  );
  told.length = 0;
  return { told, shared };
}

beforeEach(async () => {
  clock = new ManualClock();
  stream = new MemoryStream();
  one = await start('one');
  other = await start('other');
});
afterEach(() => clock.during(Promise.all([one.shared.close(), other.shared.close()])));

const change = (path: string, isTree = false): MadeChange => ({
  places: [{ path: at(path), isTree, outcome: 'absent' }],
  isNew: false,
  madeMs: 0,
});

test('a change is certain at both gateways when the second began after it had been read', async () => {
  expect(await one.shared.tell(change('/a'), one.shared.position)).toBe(true);
  await other.shared.catchUp();
  expect(await other.shared.tell(change('/a'), other.shared.position)).toBe(true);
  await one.shared.catchUp();
  expect([one.told, other.told]).toEqual([['/a certain'], ['/a certain']]);
});

test.each([
  ['the same path', change('/a'), change('/a'), false],
  ['a path and the tree above it', change('/a/b'), change('/a', true), false],
  ['a tree and a path below it', change('/a', true), change('/a/b'), false],
  ['two names', change('/a'), change('/b'), true],
  ['a folder itself and a path below it', change('/a'), change('/a/b'), true],
])(
  'changes of two gateways at the same time at %s have outcomes that are certain at both, or at neither',
  async (_, first, second, isCertain) => {
    const [before, after] = [one.shared.position, other.shared.position];
    await one.shared.tell(first, before);
    await other.shared.tell(second, after);
    await Promise.all([one.shared.catchUp(), other.shared.catchUp()]);
    const state = isCertain ? 'certain' : 'unknown';
    expect(one.told).toEqual([`${second.places[0]?.path} ${state}`]);
    expect(other.told).toEqual([`${first.places[0]?.path} ${state}`]);
  },
);

const file = (path: string, rev: string): Entry => {
  const times = { modifiedMs: 0, committedMs: 0 };
  return {
    kind: 'file',
    id: `id:${path}`,
    path: at(path),
    name: nameOf(at(path)),
    rev,
    sizeBytes: 1,
    ...times,
  };
};
const folder = (path: string): Entry => ({
  kind: 'folder',
  id: `id:${path}`,
  path: at(path),
  name: nameOf(at(path)),
});
const written = (path: string, rev: string): MadeChange => ({
  places: [{ path: at(path), isTree: false, outcome: file(path, rev) }],
  isNew: false,
  madeMs: 0,
});
const newFolder = (path: string): MadeChange => ({
  places: [{ path: at(path), isTree: true, outcome: folder(path) }],
  isNew: true,
  madeMs: 0,
});
const put = (entry: Entry): FeedChange => ({ kind: 'put', entry });
const deleted = (path: string): FeedChange => ({ kind: 'deleted', path: at(path) });

/** Lets both gateways apply a report of the change feed. */
async function report(...changes: readonly FeedChange[]): Promise<void> {
  await stream.of('follower').add(feedEventText(changes, { isDoubted: false }), undefined);
  await Promise.all([one.shared.catchUp(), other.shared.catchUp()]);
}

test.each([
  ['a deletion and a new file reported meanwhile', change('/a'), [deleted('/a'), put(file('/a', 'r3'))]],
  ['a write and a later revision', written('/a', 'r2'), [put(file('/a', 'r2')), put(file('/a', 'r3'))]],
  ['a write and a deletion', written('/a', 'r2'), [put(file('/a', 'r2')), deleted('/a')]],
  ['a write and a deletion of its folder', written('/a/b', 'r2'), [deleted('/a')]],
  ['a write in an unknown folder', written('/a/b', 'r2'), [{ kind: 'unknown-below', path: at('/a') }]],
  ['the deletion of a folder and a file in it', change('/a', true), [put(file('/a/b', 'r1'))]],
  ['a new folder and a file in it', newFolder('/a'), [put(folder('/a')), put(file('/a/b', 'r1'))]],
] satisfies [string, MadeChange, FeedChange[]][])(
  'the outcome of %s is uncertain at both gateways',
  async (_, made, reports) => {
    const since = one.shared.position;
    await report(...reports);
    expect(await one.shared.tell(made, since)).toBe(false);
    await other.shared.catchUp();
    expect(other.told.at(-1)).toBe(`${made.places[0]?.path} unknown`);
  },
);

test.each([
  ['a deletion that the feed reports before it is told', change('/a'), [deleted('/a')]],
  ['a write that the feed reports before it is told', written('/a', 'r2'), [put(file('/a', 'r2'))]],
  ['a new folder that the feed reports before it is told', newFolder('/a'), [put(folder('/a'))]],
  ['a deletion of a folder reported file by file', change('/a', true), [deleted('/a/b'), deleted('/a')]],
  ['a change and a report of another name', written('/a', 'r2'), [put(file('/b', 'r3')), deleted('/c')]],
] satisfies [string, MadeChange, FeedChange[]][])(
  'the outcome of %s is certain at both gateways',
  async (_, made, reports) => {
    const since = one.shared.position;
    await report(...reports);
    expect(await one.shared.tell(made, since)).toBe(true);
    await other.shared.catchUp();
    expect(other.told.at(-1)).toBe(`${made.places[0]?.path} certain`);
  },
);

test.each([
  ['the next write of the file', written('/d/a', 'r2')],
  ['the deletion of its folder', change('/d', true)],
])('a late report of a revision that a gateway has told of does not make %s uncertain', async (_, next) => {
  await one.shared.tell(written('/d/a', 'r1'), one.shared.position);
  const since = one.shared.position;
  await report(put(file('/d/a', 'r1')));
  expect(await one.shared.tell(next, since)).toBe(true);
  await other.shared.catchUp();
  expect(other.told.at(-1)).toMatch(/ certain$/);
});

test('a change during which all caches were dropped is uncertain, because reports may have been missed', async () => {
  const since = one.shared.position;
  await stream.of('follower').add(RESET_EVENT_TEXT, undefined);
  await Promise.all([one.shared.catchUp(), other.shared.catchUp()]);
  expect(await one.shared.tell(change('/a'), since)).toBe(false);
  await other.shared.catchUp();
  expect(other.told).toEqual(['reset', '/a unknown']);
});

test('a change that began long ago is uncertain, because what happened meanwhile is not remembered any more', async () => {
  const since = one.shared.position;
  for (let number = 0; number < 5_000; number++)
    await other.shared.tell(change(`/other-${number}`), other.shared.position);
  await one.shared.catchUp();
  expect(await one.shared.tell(change('/a'), since)).toBe(false);
});

test('changes that one gateway makes one after the other are certain without a read in between', async () => {
  for (const path of ['/a', '/a', '/a'])
    expect(await one.shared.tell(change(path), one.shared.position)).toBe(true);
  await other.shared.catchUp();
  expect(other.told).toEqual(['/a certain', '/a certain', '/a certain']);
});

test('changes that were made before Redis lost its stream make no later change uncertain', async () => {
  for (let number = 0; number < 5_000; number++) await one.shared.tell(change('/a'), one.shared.position);
  stream.events.length = 0;
  await one.shared.catchUp();
  const tell = () => one.shared.tell(change('/a'), one.shared.position);
  for (let number = 0; number < 5_000; number++) expect(await tell()).toBe(true);
});

test('a read that is asked for while another runs sees what was told in between', async () => {
  const reads = [other.shared.catchUp()];
  await one.shared.tell(change('/a'), one.shared.position);
  reads.push(other.shared.catchUp());
  await Promise.all(reads);
  expect(other.told).toEqual(['/a certain']);
});

test('a gateway that has missed events drops everything', async () => {
  await one.shared.tell(change('/a'), one.shared.position);
  stream.trimmed = 1;
  await other.shared.catchUp();
  expect(other.told).toEqual(['reset']);
  await one.shared.tell(change('/b'), one.shared.position);
  await other.shared.catchUp();
  expect(other.told).toEqual(['reset', '/b certain']);
});

test('a gateway that has read an event which Redis loses drops everything, though another event has its number', async () => {
  await one.shared.tell(change('/lost'), one.shared.position);
  await other.shared.catchUp();
  const number = other.shared.position?.number;
  stream.loseLast();
  const third = await start('third');
  await third.shared.tell(change('/a'), third.shared.position);
  expect(third.shared.position?.number).toBe(number);
  await clock.during(third.shared.close());
  await other.shared.catchUp();
  expect(other.told).toEqual(['/lost certain', 'reset']);
});

test('a gateway that adds a change after an unnoticed loss still learns of those before it', async () => {
  await one.shared.tell(change('/lost'), one.shared.position);
  stream.loseLast();
  await other.shared.tell(change('/a'), other.shared.position);
  await one.shared.tell(change('/b'), one.shared.position);
  await Promise.all([one.shared.catchUp(), other.shared.catchUp()]);
  expect([one.told, other.told]).toEqual([['reset'], ['reset']]);
});

test('a change that began before a loss is uncertain, because its position tells nothing any more', async () => {
  await one.shared.tell(change('/lost'), one.shared.position);
  const since = one.shared.position;
  stream.loseLast();
  await one.shared.catchUp();
  await other.shared.catchUp();
  await other.shared.tell(change('/a'), other.shared.position);
  expect(one.told).toEqual(['reset']);
  await one.shared.catchUp();
  expect(await one.shared.tell(change('/a'), since)).toBe(false);
  await other.shared.catchUp();
  expect(other.told).toEqual(['reset', '/a unknown']);
});

test('a change that Redis was not told while it was away is told later, with an unknown outcome', async () => {
  stream.isAway = true;
  expect(await one.shared.tell(change('/a'), one.shared.position)).toBe(false);
  await clock.advance(3_000);
  stream.isAway = false;
  await clock.advance(1_000);
  await other.shared.catchUp();
  expect(JSON.parse(stream.events[0]?.text ?? '').places).toEqual([{ path: '/a', isTree: false }]);
  expect(other.told).toHaveLength(1);
});

test('requests wait at most 2 s for a Redis that hangs, and then use cached answers for a short time only', async () => {
  stream.isHanging = true;
  const begun = clock.instant();
  const waiting = other.shared.catchUp();
  await turn(5);
  await clock.during(waiting);
  expect(elapsedMs(clock, begun)).toBeLessThanOrEqual(2_000);
  expect(freshness.isAlive).toBe(false);
  stream.isHanging = false;
  await one.shared.tell(change('/a'), one.shared.position);
  await clock.during(other.shared.catchUp());
  expect(other.told).toEqual(['/a certain']);
});

test('after Redis was away a gateway trusts its cache only when it has what the others could not tell meanwhile', async () => {
  stream.isAway = true;
  await one.shared.tell(change('/a'), one.shared.position);
  await other.shared.catchUp();
  expect(freshness.isAlive).toBe(false);
  stream.isAway = false;
  await other.shared.catchUp();
  for (let ms = 0; ms < 20_000 && !freshness.isAlive; ms += 100) await clock.advance(100);
  expect([other.told, freshness.isAlive]).toEqual([['/a certain'], true]);
});

test('a time that Redis was not told while it was away is told later as a change', async () => {
  stream.isAway = true;
  await one.shared.tellTime({ kind: 'folder', id: 'id:1', path: at('/a'), name: 'a' });
  stream.isAway = false;
  await clock.advance(1_000);
  await other.shared.catchUp();
  expect(other.told).toEqual(['/a certain']);
});

test('reports of the feed are applied by every gateway, and a report too large for Redis drops everything', async () => {
  await stream.of('one').add(feedEventText([deleted('/a')], { isDoubted: false }), undefined);
  const many = Array.from({ length: 5_000 }, (_, index) => deleted(`/folder/${index}`));
  await stream.of('one').add(feedEventText(many, { isDoubted: false }), undefined);
  await Promise.all([one.shared.catchUp(), other.shared.catchUp()]);
  expect([one.told, other.told]).toEqual([
    ['feed 1', 'reset'],
    ['feed 1', 'reset'],
  ]);
});

test('a report of the feed that a gateway could not apply is applied by its next read', async () => {
  isFailing = true;
  await stream.of('one').add(feedEventText([], { isDoubted: false }), undefined);
  await other.shared.catchUp();
  expect(other.told).toEqual([]);
  isFailing = false;
  await other.shared.catchUp();
  expect(other.told).toEqual(['feed 0']);
});

test('the times and replacements of a gateway are told to the others, and not to itself', async () => {
  const entry = { kind: 'folder', id: 'id:1', path: at('/a'), name: 'a' } as const;
  await one.shared.tellTime(entry);
  await one.shared.tellReplacing('r1', at('/a'));
  await one.shared.tellReplaced('r1');
  await Promise.all([one.shared.catchUp(), other.shared.catchUp()]);
  expect([one.told, other.told]).toEqual([[], ['time /a', 'replacing r1', 'replaced r1']]);
});
