import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Change } from '../../../src/api/remote.ts';
import { ROOT } from '../../../src/util/path.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  folderMetadata,
  hang,
  ok,
  refuse,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const LIST = 'files/list_folder';
const CONTINUE = 'files/list_folder/continue';
const LONGPOLL = 'files/list_folder/longpoll';

const page = (entries: unknown[], more: Record<string, unknown> = {}): Answer =>
  ok({ entries, cursor: 'cursor-1', has_more: false, ...more });
const file = (path: string, more = {}) => tagged('file', fileMetadata(path, more));
const pathless = ({ path_lower: _, path_display: __, ...metadata }: Record<string, unknown>) => metadata;
const folder = (path: string) => tagged('folder', folderMetadata(path));

let scripted: Scripted;
const reopen = async (root: string) => {
  await scripted.close();
  scripted = await openScripted({ root });
};
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

async function listed(path: string, recursive = false): Promise<Change[]> {
  const changes: Change[] = [];
  for await (const next of scripted.remote.list(at(path), { recursive })) changes.push(...next.changes);
  return changes;
}
const pathsOf = (changes: readonly Change[]) =>
  changes.map((change) => (change.kind === 'put' ? change.entry.path : change.path));

describe('the place of an id', () => {
  const METADATA = 'files/get_metadata';

  test.each([
    ['below the root is its path in the drive', file('/Team/a/b'), '/a/b'],
    ['that is the root’s own is the root of the drive', folder('/team'), '/'],
    ['whose path only begins like the root’s is outside', file('/Teams/a'), 'outside'],
    ['without a path is outside: its shared folder is not mounted', pathless(file('/a')), 'outside'],
    ['that the service calls deleted is nowhere', tagged('deleted', fileMetadata('/Team/a')), undefined],
  ])('%s', async (_, metadata, place) => {
    await reopen('/Team');
    scripted.service.on(METADATA, ok(metadata));
    expect(await scripted.remote.locate('id:one')).toBe(place);
  });
});

describe('a listing', () => {
  test('goes on until the service has no more, over empty pages too', async () => {
    const { service } = scripted;
    service
      .on(LIST, page([file('/d/a')], { has_more: true, cursor: 'c1' }))
      .on(CONTINUE, page([], { has_more: true, cursor: 'c2' }), page([file('/d/b')], { cursor: 'c3' }));
    expect(pathsOf(await listed('/d'))).toEqual(['/d/a', '/d/b']);
    expect(service.calls.map(({ arg }) => arg)).toMatchObject([
      { path: '/d', recursive: false },
      { cursor: 'c1' },
      { cursor: 'c2' },
    ]);
  });

  test('names the root the way the service wants it', async () => {
    scripted.service.on(LIST, page([]));
    await listed('/');
    expect(scripted.service.calls[0]?.arg).toMatchObject({ path: '' });
  });

  test('has children where they were asked for, whatever case the service gives their parents', async () => {
    scripted.service.on(LIST, page([file('/SOME/dir/Übung.TXT')]));
    expect(pathsOf(await listed('/Some/Dir'))).toEqual(['/Some/Dir/Übung.TXT']);
  });

  test('has names in NFC', async () => {
    scripted.service.on(LIST, page([file('/d/u\u0308.txt')]));
    expect(await listed('/d')).toMatchObject([{ entry: { name: 'ü.txt', path: '/d/ü.txt' } }]);
  });

  test('of all below does not have the folder itself', async () => {
    scripted.service.on(LIST, page([folder('/D'), folder('/D/x'), file('/D/x/y')]));
    expect(pathsOf(await listed('/d', true))).toEqual(['/D/x', '/D/x/y']);
  });

  test('leaves out a name that no path can hold, says so, and keeps the others', async () => {
    scripted.service.on(LIST, page([file('/d/\ud800'), file('/d/good'), file('/d/..')]));
    expect(pathsOf(await listed('/d'))).toEqual(['/d/good']);
    expect(scripted.log.lines).toHaveLength(2);
  });

  const gone = refuse({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found');
  const isFile = refuse({ '.tag': 'path', path: { '.tag': 'not_folder' } }, 'path/not_folder');

  test.each<[string, Answer, string]>([
    ['of nothing', gone, 'not-found'],
    ['of a file', isFile, 'not-folder'],
  ])('%s fails', async (_what, answer, failure) => {
    scripted.service.on(LIST, answer);
    await expect(listed('/d')).rejects.toMatchObject({ failure });
  });

  test.each<[string, Answer, string]>([
    ['whose folder goes away', gone, 'not-found'],
    ['that has to be begun again', refuse({ '.tag': 'reset' }, 'reset'), 'reset'],
  ])('%s fails in the middle', async (_what, answer, failure) => {
    scripted.service.on(LIST, page([], { has_more: true })).on(CONTINUE, answer);
    await expect(listed('/d')).rejects.toMatchObject({ failure });
  });

  test('sends names in NFC', async () => {
    scripted.service.on(LIST, page([]));
    await listed('/u\u0308');
    expect(scripted.service.calls[0]?.arg).toMatchObject({ path: '/ü' });
  });
});

describe('an entry', () => {
  test('has all that the service says', async () => {
    const times = { client_modified: '2020-02-03T04:05:06Z', server_modified: '2021-02-03T04:05:06Z' };
    scripted.service.on('files/get_metadata', ok(file('/d/F.txt', { ...times, size: 7 })));
    expect(await scripted.remote.stat(at('/D/f.TXT'))).toEqual({
      kind: 'file',
      id: 'id:AAAAAAAAAAAAAAAAAAAAAA',
      path: '/d/F.txt',
      name: 'F.txt',
      rev: '0123456789abc',
      sizeBytes: 7,
      contentHash: 'a'.repeat(64),
      modifiedMs: Date.UTC(2020, 1, 3, 4, 5, 6),
      committedMs: Date.UTC(2021, 1, 3, 4, 5, 6),
    });
  });

  test('may lack a content hash', async () => {
    const { content_hash: _, ...unhashed } = fileMetadata('/f');
    scripted.service.on('files/get_metadata', ok(tagged('file', unhashed)));
    expect(await scripted.remote.stat(at('/f'))).not.toHaveProperty('contentHash');
  });

  test('of the account itself is nothing that the service could be asked', async () => {
    await expect(scripted.remote.stat(ROOT)).rejects.toMatchObject({ failure: 'bad-request' });
    expect(scripted.service.calls).toEqual([]);
  });
});

describe('a drive that is a folder of the account', () => {
  test('sends and shows paths of its own', async () => {
    await reopen('/Team/Über uns/');
    const { service, remote } = scripted;
    service.on('files/get_metadata', ok(file('/TEAM/über UNS/Sub/f')));
    expect(await remote.stat(at('/sub/F'))).toMatchObject({ path: '/Sub/f' });
    expect(service.calls[0]?.arg).toMatchObject({ path: '/Team/Über uns/sub/F' });
  });

  test('describes its root', async () => {
    await reopen('/Team');
    scripted.service.on('files/get_metadata', ok(folder('/Team')));
    expect(await scripted.remote.stat(ROOT)).toMatchObject({ kind: 'folder', path: '/', name: '' });
  });

  test('has in its changes nothing from elsewhere', async () => {
    await reopen('/Team');
    const deleted = { name: 'x', path_lower: '/team/x', path_display: '/Team/x' };
    scripted.service.on(
      CONTINUE,
      page([folder('/Team'), file('/Teams/f'), file('/f'), file('/team/g'), tagged('deleted', deleted)]),
    );
    const { changes } = await scripted.remote.changesSince('c');
    expect(pathsOf(changes)).toEqual(['/g', '/x']);
  });

  test('says when it was itself removed', async () => {
    await reopen('/Team');
    const deleted = { name: 'Team', path_lower: '/team', path_display: '/Team' };
    scripted.service.on(CONTINUE, page([tagged('deleted', deleted)]));
    expect((await scripted.remote.changesSince('c')).changes).toEqual([{ kind: 'deleted', path: '/' }]);
  });

  test('has a root that is a path', async () => {
    await expect(openScripted({ root: '/a/../b' })).rejects.toThrow('".."');
  });
});

describe('the long poll', () => {
  test('goes without a token, in whole seconds that the service takes', async () => {
    const { service, remote } = scripted;
    service.on(LONGPOLL, ok({ changes: false }));
    expect(await remote.awaitChange('c', 45_400)).toBe(false);
    await remote.awaitChange('c', 1);
    await remote.awaitChange('c', 3_600_000);
    expect(service.calls.map(({ arg }) => arg)).toEqual([
      { cursor: 'c', timeout: 45 },
      { cursor: 'c', timeout: 30 },
      { cursor: 'c', timeout: 480 },
    ]);
    for (const { headers } of service.calls) expect(headers.authorization).toBeUndefined();
  });

  test('tells of changes, though the service calls its JSON text', async () => {
    scripted.service.on(LONGPOLL, text(200, '{"changes":true}'));
    expect(await scripted.remote.awaitChange('c', 30_000)).toBe(true);
  });

  test('stays away for as long as the service said', async () => {
    const { service, remote, clock } = scripted;
    service.on(LONGPOLL, ok({ changes: true, backoff: 60 }), ok({ changes: false }));
    await remote.awaitChange('c', 30_000);
    const second = remote.awaitChange('c', 30_000);
    await clock.advance(59_999);
    expect(service.calls).toHaveLength(1);
    await clock.advance(1);
    expect(await second).toBe(false);
  });

  test.each<[string, Answer]>([
    ['has expired', refuse({ '.tag': 'reset' }, 'reset')],
    ['is rubbish', text(400, 'request body: cursor: unsupported cursor type')],
  ])('says that its cursor %s', async (_what, answer) => {
    scripted.service.on(LONGPOLL, answer);
    await expect(scripted.remote.awaitChange('c', 30_000)).rejects.toMatchObject({ failure: 'reset' });
  });

  test('holds up no other call, however many wait', async () => {
    const { service, remote } = scripted;
    service.on(LONGPOLL, hang).on('files/get_metadata', ok(file('/f')));
    const abort = new AbortController();
    const polls = Array.from({ length: 30 }, () => remote.awaitChange('c', 30_000, abort.signal));
    await service.until(() => service.callsOf(LONGPOLL).length === 30);
    expect(await remote.stat(at('/f'))).toMatchObject({ name: 'f' });
    abort.abort(new Error('enough'));
    await Promise.allSettled(polls);
    await service.until(() => service.aborted === 30);
  });

  test('is not cut by the time that other answers may take', async () => {
    await scripted.close();
    scripted = await openScripted({
      timeouts: { connectMs: 1000, answerMs: 200, firstAnswerMs: 200, slowAnswerMs: 200, silenceMs: 60_000 },
    });
    let answer = () => {};
    scripted.service.on(LONGPOLL, (response, call, request) => {
      answer = () => void ok({ changes: true })(response, call, request);
    });
    // A call with the ordinary limit is given up and tried again meanwhile; the poll is still waiting then.
    const poll = scripted.remote.awaitChange('c', 30_000);
    await scripted.service.until(() => scripted.service.callsOf(LONGPOLL).length === 1);
    scripted.service.on('files/get_metadata', hang, hang, ok(file('/f')));
    expect(await scripted.remote.stat(at('/f'))).toMatchObject({ name: 'f' });
    answer();
    expect(await poll).toBe(true);
    expect(scripted.service.callsOf(LONGPOLL)).toHaveLength(1);
  });
});
