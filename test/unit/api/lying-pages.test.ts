import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Change } from '../../../src/api/remote.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { type Answer, fileMetadata, ok, tagged } from '../../support/scripted-service.ts';

const LIST = 'files/list_folder';
const CONTINUE = 'files/list_folder/continue';

const page = (entries: unknown[], more: Record<string, unknown> = {}): Answer =>
  ok({ entries, cursor: 'cursor-1', has_more: false, ...more });
const file = (path: string, more = {}) => tagged('file', fileMetadata(path, more));

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted({ random: () => 0.9 });
});
afterEach(() => scripted.close());

async function listed(path: string): Promise<Change[]> {
  const changes: Change[] = [];
  for await (const next of scripted.remote.list(at(path), { recursive: false }))
    changes.push(...next.changes);
  return changes;
}
const namesOf = (changes: readonly Change[]) =>
  changes.map((change) => (change.kind === 'put' ? change.entry.name : change.path));

/** Answers each page with a new cursor and more to come. */
function endless(entries: () => unknown[]): Answer {
  let number = 0;
  return (response, call, request) =>
    page(entries(), { has_more: true, cursor: `c${number++}` })(response, call, request);
}

describe('endless listings', () => {
  test.each<[string, Answer, number]>([
    ['pages whose cursor leads to themselves', page([], { has_more: true }), 60],
    ['a repeated page', page([file('/d/a')], { has_more: true }), 60],
    ['empty pages', endless(() => []), 150],
    ['the same entries on every page', endless(() => [file('/d/a')]), 150],
  ])(
    'a listing that never ends, with %s, fails with unavailable after a bounded number of calls',
    async (_how, answer, callsMax) => {
      const { service, clock } = scripted;
      service.on(LIST, answer).on(CONTINUE, answer);
      await expect(clock.during(listed('/d'))).rejects.toMatchObject({ failure: 'unavailable' });
      expect(service.calls.length).toBeLessThan(callsMax);
    },
  );

  test('changesSince with a page whose cursor leads to itself fails with unavailable', async () => {
    const { service, remote, clock } = scripted;
    service.on(CONTINUE, page([file('/a')], { has_more: true, cursor: 'c' }));
    await expect(clock.during(remote.changesSince('c'))).rejects.toMatchObject({ failure: 'unavailable' });
  });
});

describe('invalid entries', () => {
  test.each<[string, Record<string, unknown>]>([
    ['without a name', { name: undefined }],
    ['with an empty name', { name: '' }],
    ['whose name is no text', { name: 7 }],
    ['without a path', { path_display: undefined, path_lower: undefined }],
    ['whose path is null', { path_display: null, path_lower: null }],
    ['whose path is relative', { path_display: 'd/b' }],
    ['whose path ends with another name', { path_display: '/d/c', path_lower: '/d/c' }],
    ['without a kind', { '.tag': undefined }],
    ['whose kind is no text', { '.tag': 1 }],
    ['without an id', { id: undefined }],
    ['of a negative size', { size: -1 }],
  ])('a page with an entry %s fails as a whole in list and in changesSince', async (_what, lie) => {
    const { service, remote, clock } = scripted;
    const lying = page([file('/d/a'), file('/d/b', lie)]);
    service.on(LIST, lying).on(CONTINUE, lying);
    await expect(clock.during(listed('/d'))).rejects.toMatchObject({ failure: 'unavailable' });
    await expect(clock.during(remote.changesSince('c'))).rejects.toMatchObject({ failure: 'unavailable' });
  });

  test('list retries after a page with an invalid entry and returns the valid answer', async () => {
    const { service, clock } = scripted;
    service.on(LIST, page([file('/d/a', { name: undefined })]), page([file('/d/a')]));
    expect(namesOf(await clock.during(listed('/d')))).toEqual(['a']);
  });
});

describe('unknown kinds of entries', () => {
  test('an entry of an unknown kind is left out and logged once, and the others are returned', async () => {
    const { service, log } = scripted;
    const link = { '.tag': 'symlink', id: 'id:x', name: 'x', path_lower: '/d/x', path_display: '/d/x' };
    service.on(LIST, page([link, file('/d/a'), link]));
    expect(namesOf(await listed('/d'))).toEqual(['a']);
    expect(namesOf(await listed('/d'))).toEqual(['a']);
    expect(log.lines.filter(({ fields }) => fields?.['kind'] === 'symlink')).toHaveLength(1);
  });

  test('an entry of an unknown kind with all fields of a file is a file', async () => {
    const { service } = scripted;
    service.on(LIST, page([file('/d/a', { '.tag': 'file_with_comments' })]));
    expect(await listed('/d')).toMatchObject([{ kind: 'put', entry: { kind: 'file', name: 'a' } }]);
  });
});
