import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Change, FeedChange } from '../../../src/api/remote.ts';
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

/** The name of a folder that is a part of long names. */
const PART = `${'a'.repeat(250)}␗`;

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
const pathsOf = (changes: readonly FeedChange[]) =>
  changes.map((change) => (change.kind === 'put' ? change.entry.path : change.path));

describe('locate', () => {
  const METADATA = 'files/get_metadata';

  test.each([
    ['below the root', file('/Team/a/b'), '/a/b'],
    ['that is the root itself', folder('/team'), '/'],
    ['whose path only shares a prefix with the root', file('/Teams/a'), 'outside'],
    ['without a path, in an unmounted shared folder,', pathless(file('/a')), 'outside'],
    ['in a folder with parts of long names, without being one,', file(`/Team/${PART}/b`), 'outside'],
    ['that is deleted', tagged('deleted', fileMetadata('/Team/a')), undefined],
  ])(
    'locate of an entry %s returns its path in the drive, "outside" or nothing',
    async (_, metadata, place) => {
      await reopen('/Team');
      scripted.service.on(METADATA, ok(metadata));
      expect(await scripted.remote.locate('id:one')).toBe(place);
    },
  );
});

describe('list', () => {
  test('list continues until the service has no more entries, also over empty pages', async () => {
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

  test('list sends the root as an empty path', async () => {
    scripted.service.on(LIST, page([]));
    await listed('/');
    expect(scripted.service.calls[0]?.arg).toMatchObject({ path: '' });
  });

  test('list returns children below the requested path, whatever letter case the service gives their parents', async () => {
    scripted.service.on(LIST, page([file('/SOME/dir/Übung.TXT')]));
    expect(pathsOf(await listed('/Some/Dir'))).toEqual(['/Some/Dir/Übung.TXT']);
  });

  test('list returns names in NFC', async () => {
    scripted.service.on(LIST, page([file('/d/u\u0308.txt')]));
    expect(await listed('/d')).toMatchObject([{ entry: { name: 'ü.txt', path: '/d/ü.txt' } }]);
  });

  test('a recursive list leaves out the folder itself', async () => {
    scripted.service.on(LIST, page([folder('/D'), folder('/D/x'), file('/D/x/y')]));
    expect(pathsOf(await listed('/d', true))).toEqual(['/D/x', '/D/x/y']);
  });

  test('list leaves out names that a path cannot contain, logs them and returns the others', async () => {
    scripted.service.on(LIST, page([file('/d/\ud800'), file('/d/good'), file('/d/..')]));
    expect(pathsOf(await listed('/d'))).toEqual(['/d/good']);
    expect(scripted.log.lines).toHaveLength(2);
  });

  const gone = refuse({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found');
  const isFile = refuse({ '.tag': 'path', path: { '.tag': 'not_folder' } }, 'path/not_folder');

  test.each<[string, Answer, string]>([
    ['a missing folder', gone, 'not-found'],
    ['a file', isFile, 'not-folder'],
  ])('list of %s fails', async (_what, answer, failure) => {
    scripted.service.on(LIST, answer);
    await expect(listed('/d')).rejects.toMatchObject({ failure });
  });

  test.each([
    ['removed', gone],
    ['replaced by a file', isFile],
  ])('list leaves out a folder with parts of long names that is %s meanwhile', async (_what, answer) => {
    scripted.service.on(LIST, page([folder(`/d/${PART}`), file('/d/a')]), answer);
    expect(pathsOf(await listed('/d'))).toEqual(['/d/a']);
    expect(scripted.service.callsOf(LIST)).toHaveLength(2);
  });

  test('list fails when a folder with parts of long names cannot be read', async () => {
    const refused = refuse(
      { '.tag': 'path', path: { '.tag': 'restricted_content' } },
      'path/restricted_content',
    );
    scripted.service.on(LIST, page([folder(`/d/${PART}`), file('/d/a')]), refused);
    await expect(listed('/d')).rejects.toThrow('restricted_content');
  });

  test.each<[string, Answer, string]>([
    ['the folder is removed', gone, 'not-found'],
    ['the cursor is reset', refuse({ '.tag': 'reset' }, 'reset'), 'reset'],
  ])('list fails in the middle when %s', async (_what, answer, failure) => {
    scripted.service.on(LIST, page([], { has_more: true })).on(CONTINUE, answer);
    await expect(listed('/d')).rejects.toMatchObject({ failure });
  });

  test('list sends names in NFC', async () => {
    scripted.service.on(LIST, page([]));
    await listed('/u\u0308');
    expect(scripted.service.calls[0]?.arg).toMatchObject({ path: '/ü' });
  });
});

describe('stat', () => {
  test("stat returns all fields of a file's metadata", async () => {
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

  test('stat of a file without a content hash returns an entry without one', async () => {
    const { content_hash: _, ...unhashed } = fileMetadata('/f');
    scripted.service.on('files/get_metadata', ok(tagged('file', unhashed)));
    expect(await scripted.remote.stat(at('/f'))).not.toHaveProperty('contentHash');
  });

  test("stat of the account's root fails without a call", async () => {
    await expect(scripted.remote.stat(ROOT)).rejects.toMatchObject({ failure: 'bad-request' });
    expect(scripted.service.calls).toEqual([]);
  });
});

describe('a drive that is a folder of the account', () => {
  test('a drive with a root sends paths below it and returns paths relative to it', async () => {
    await reopen('/Team/Über uns/');
    const { service, remote } = scripted;
    service.on('files/get_metadata', ok(file('/TEAM/über UNS/Sub/f')));
    expect(await remote.stat(at('/sub/F'))).toMatchObject({ path: '/Sub/f' });
    expect(service.calls[0]?.arg).toMatchObject({ path: '/Team/Über uns/sub/F' });
  });

  test("stat of a drive's root returns a folder", async () => {
    await reopen('/Team');
    scripted.service.on('files/get_metadata', ok(folder('/Team')));
    expect(await scripted.remote.stat(ROOT)).toMatchObject({ kind: 'folder', path: '/', name: '' });
  });

  test("changesSince leaves out changes outside the drive's root", async () => {
    await reopen('/Team');
    const deleted = { name: 'x', path_lower: '/team/x', path_display: '/Team/x' };
    scripted.service.on(
      CONTINUE,
      page([folder('/Team'), file('/Teams/f'), file('/f'), file('/team/g'), tagged('deleted', deleted)]),
    );
    const { changes } = await scripted.remote.changesSince('c');
    expect(pathsOf(changes)).toEqual(['/g', '/x']);
  });

  test("changesSince reports that the drive's root was deleted", async () => {
    await reopen('/Team');
    const deleted = { name: 'Team', path_lower: '/team', path_display: '/Team' };
    scripted.service.on(CONTINUE, page([tagged('deleted', deleted)]));
    expect((await scripted.remote.changesSince('c')).changes).toEqual([{ kind: 'deleted', path: '/' }]);
  });

  test.each([
    ['the first part', `/Team/In/${PART}`],
    ['a later part', `/Team/In/${PART}/␗${'b'.repeat(250)}␗`],
  ])(
    'changesSince reports that what is below a folder is unknown when %s of long names in it was deleted',
    async (_which, path) => {
      await reopen('/Team');
      const deleted = {
        name: path.slice(path.lastIndexOf('/') + 1),
        path_lower: path.toLowerCase(),
        path_display: path,
      };
      scripted.service.on(CONTINUE, page([tagged('deleted', deleted)]));
      expect((await scripted.remote.changesSince('c')).changes).toEqual([
        { kind: 'unknown-below', path: '/In' },
      ]);
    },
  );

  test('a root with ".." is refused', async () => {
    await expect(openScripted({ root: '/a/../b' })).rejects.toThrow('".."');
  });
});

describe('awaitChange', () => {
  test('awaitChange sends no token, and a timeout in whole seconds from 30 to 480', async () => {
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

  test('awaitChange reads JSON that is sent as plain text', async () => {
    scripted.service.on(LONGPOLL, text(200, '{"changes":true}'));
    expect(await scripted.remote.awaitChange('c', 30_000)).toBe(true);
  });

  test('awaitChange waits for the backoff that the service asked for', async () => {
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
    ['is malformed', text(400, 'request body: cursor: unsupported cursor type')],
  ])('awaitChange fails with reset when its cursor %s', async (_what, answer) => {
    scripted.service.on(LONGPOLL, answer);
    await expect(scripted.remote.awaitChange('c', 30_000)).rejects.toMatchObject({ failure: 'reset' });
  });

  test('30 long polls do not delay a stat', async () => {
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

  test('awaitChange outlasts the timeout of other answers', async () => {
    await scripted.close();
    scripted = await openScripted({
      timeouts: { connectMs: 1000, answerMs: 200, firstAnswerMs: 200, slowAnswerMs: 200, silenceMs: 60_000 },
    });
    let answer = () => {};
    scripted.service.on(LONGPOLL, (response, call, request) => {
      answer = () => void ok({ changes: true })(response, call, request);
    });
    // A stat with the ordinary timeout is given up and retried meanwhile, and the poll is still waiting then.
    const poll = scripted.remote.awaitChange('c', 30_000);
    await scripted.service.until(() => scripted.service.callsOf(LONGPOLL).length === 1);
    scripted.service.on('files/get_metadata', hang, hang, ok(file('/f')));
    expect(await scripted.remote.stat(at('/f'))).toMatchObject({ name: 'f' });
    answer();
    expect(await poll).toBe(true);
    expect(scripted.service.callsOf(LONGPOLL)).toHaveLength(1);
  });
});
