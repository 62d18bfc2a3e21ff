import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WriteMode } from '../../../src/api/remote.ts';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  folderMetadata,
  lose,
  notFound,
  ok,
  refuse,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const STAT = 'files/get_metadata';
const BODY = new TextEncoder().encode('abc');
const HASH = contentHashOf(BODY);
const OLD_REV = '0000000000001';

const conflict = refuse(
  { '.tag': 'path', reason: { '.tag': 'conflict', conflict: { '.tag': 'file' } }, upload_session_id: 's' },
  'path/conflict/file',
);

/** The service's clock is the machine's: what was committed now is newer than any call of the test. */
const justNow = () => new Date(Date.now() + 1000).toISOString().replace(/\.\d+Z$/, 'Z');
const LONG_AGO = '2020-01-01T00:00:00Z';

const stored = (more: Record<string, unknown> = {}) =>
  ok(tagged('file', fileMetadata('/f', { content_hash: HASH, server_modified: justNow(), ...more })));

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

/** All ways in which a call may have done its work although no good answer came. */
const LOSSES: [string, Answer][] = [
  ['cut before the answer', lose],
  ['500', text(500, '')],
  ['an answer of rubbish', text(200, '<html>')],
];

describe.each(LOSSES)('an upload whose answer is lost: %s', (_what, loss) => {
  const upload = (mode: WriteMode) => scripted.remote.upload(at('/f'), BODY, { mode });

  test.each<WriteMode>([{ if: 'any' }, { if: 'absent' }, { if: 'rev', rev: OLD_REV }])(
    'was done: our content is there (%o)',
    async (mode) => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, stored());
      expect(await upload(mode)).toMatchObject({ path: '/f', contentHash: HASH });
      expect(service.callsOf('files/upload')).toHaveLength(1);
    },
  );

  test('was not done: it is sent again', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, ok(fileMetadata('/f', { content_hash: HASH }))).on(STAT, notFound);
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
    expect(service.callsOf('files/upload')).toHaveLength(2);
  });

  test('was done after we looked: the conflict that follows is with ourselves', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, notFound, stored());
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
    expect(service.routes).toEqual(['files/upload', STAT, 'files/upload', STAT]);
  });

  test('met another content there: a true conflict', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, stored({ content_hash: 'b'.repeat(64) }));
    await expect(upload({ if: 'rev', rev: OLD_REV })).rejects.toMatchObject({ failure: 'conflict-file' });
  });

  describe('and somebody has replaced what it wrote before we looked', () => {
    const theirs = fileMetadata('/f', { rev: '00000000000c', content_hash: 'b'.repeat(64) });
    const base = fileMetadata('/f', { rev: OLD_REV, server_modified: LONG_AGO });
    const history = (...entries: object[]) => ok({ is_deleted: false, entries, has_more: false });
    const revision = (more: Record<string, unknown>) =>
      fileMetadata('/f', { rev: '00000000000b', content_hash: HASH, server_modified: justNow(), ...more });

    test.each<[string, WriteMode]>([
      ['absent', { if: 'absent' }],
      ['rev', { if: 'rev', rev: OLD_REV }],
    ])('was done all the same: it is in the history (%s)', async (_mode, mode) => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, ok(tagged('file', theirs)));
      service.on('files/list_revisions', history(theirs, revision({}), base));
      expect(await upload(mode)).toMatchObject({ rev: '00000000000b' });
      expect(service.callsOf('files/upload')).toHaveLength(2);
    });

    test('or deleted it: it is in the history too', async () => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, notFound);
      service.on('files/list_revisions', history(revision({}), base));
      expect(await upload({ if: 'rev', rev: OLD_REV })).toMatchObject({ rev: '00000000000b' });
    });

    test.each([
      ['what was there long before', revision({ server_modified: LONG_AGO })],
      ['other content', revision({ content_hash: 'c'.repeat(64) })],
    ])('but %s is not ours', async (_what, other) => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, ok(tagged('file', theirs)));
      service.on('files/list_revisions', history(theirs, other, base));
      await expect(upload({ if: 'rev', rev: OLD_REV })).rejects.toMatchObject({ failure: 'conflict-file' });
    });

    test('nor is what the named revision replaced', async () => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, ok(tagged('file', theirs)));
      service.on('files/list_revisions', history(theirs, base, revision({})));
      await expect(upload({ if: 'rev', rev: OLD_REV })).rejects.toMatchObject({ failure: 'conflict-file' });
    });
  });

  test('met equal content under a name in another case: a true conflict for `absent`', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, stored({ name: 'F', path_display: '/F' }));
    await expect(upload({ if: 'absent' })).rejects.toMatchObject({ failure: 'conflict-file' });
  });

  test('cannot be looked for: it is sent again', async () => {
    const { service } = scripted;
    const forbidden = refuse(
      { '.tag': 'path', path: { '.tag': 'restricted_content' } },
      'path/restricted_content',
    );
    service.on('files/upload', loss, ok(fileMetadata('/f', { content_hash: HASH }))).on(STAT, forbidden);
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
  });

  test('met equal content that was there long before: a true conflict for `absent`', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, stored({ server_modified: LONG_AGO }));
    await expect(upload({ if: 'absent' })).rejects.toMatchObject({ failure: 'conflict-file' });
  });
});

describe('an upload', () => {
  test('whose answer is lost at the deadline is still looked for', async () => {
    await scripted.close();
    scripted = await openScripted({ random: () => 0.9 });
    const { service, remote, clock } = scripted;
    // The waits are 450, 900, 1800, 3600 and 7200 ms; with one more it would be over 25 s.
    const tries = 6;
    service.on('files/upload', lose).on(STAT, (response, call, request) => {
      const done = service.callsOf('files/upload').length === tries;
      return (done ? stored() : notFound)(response, call, request);
    });
    const upload = remote.upload(at('/f'), BODY, { mode: { if: 'absent' } });
    expect(await clock.during(upload)).toMatchObject({ contentHash: HASH });
    expect(clock.now() - Date.UTC(2026, 0, 1)).toBe(13_950);
  });

  test('is recognised though our clock is far ahead of the service', async () => {
    await scripted.close();
    scripted = await openScripted({ clock: new ManualClock(Date.UTC(2100, 0, 1)) });
    scripted.service.on('files/upload', lose, conflict).on(STAT, stored());
    expect(await scripted.remote.upload(at('/f'), BODY, { mode: { if: 'absent' } })).toMatchObject({
      contentHash: HASH,
    });
  });

  test('that certainly did not arrive is not looked for', async () => {
    const gone = await openScripted();
    await gone.close();
    await scripted.close();
    scripted = await openScripted({ contentUrl: gone.service.url, random: () => 0.9 });
    const upload = scripted.remote.upload(at('/f'), BODY, { mode: { if: 'absent' } });
    await expect(scripted.clock.during(upload)).rejects.toMatchObject({ failure: 'offline' });
    expect(scripted.service.calls).toEqual([]);
  });

  test('refused in so many words is not looked for', async () => {
    const { service, remote } = scripted;
    service.on('files/upload', conflict);
    await expect(remote.upload(at('/f'), BODY, { mode: { if: 'absent' } })).rejects.toMatchObject({
      failure: 'conflict-file',
    });
    expect(service.routes).toEqual(['files/upload']);
  });

  test('of the very revision and content that are there needs no writing, though strict says conflict', async () => {
    const { service, remote } = scripted;
    service.on('files/upload', conflict).on(STAT, stored({ rev: OLD_REV, server_modified: LONG_AGO }));
    const mode = { if: 'rev', rev: OLD_REV } as const;
    expect(await remote.upload(at('/f'), BODY, { mode })).toMatchObject({ rev: OLD_REV });
  });
});

const finishing = {
  session: { id: 'pid_upload_session:1' },
  sizeBytes: 3,
  contentHash: HASH,
  path: at('/f'),
  options: { mode: { if: 'absent' } },
} as const;

describe.each(LOSSES)('a session commit whose answer is lost: %s', (_what, loss) => {
  const FINISH = 'files/upload_session/finish';
  const used = refuse(
    { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } },
    'lookup_failed/not_found',
  );

  test('was done', async () => {
    const { service, remote } = scripted;
    service.on(FINISH, loss, used).on(STAT, stored());
    expect(await remote.finishSession(finishing)).toMatchObject({ contentHash: HASH });
    expect(service.callsOf(FINISH)).toHaveLength(1);
  });

  test('was done after we looked: the session is used up', async () => {
    const { service, remote } = scripted;
    service.on(FINISH, loss, used).on(STAT, notFound, stored());
    expect(await remote.finishSession(finishing)).toMatchObject({ contentHash: HASH });
  });

  test('without the hash: by size, time and what the writer said of the time', async () => {
    const { service, remote } = scripted;
    const modifiedMs = Date.UTC(2001, 1, 2, 3, 4, 5);
    const { contentHash: _, ...unhashed } = finishing;
    const commit = { ...unhashed, options: { mode: { if: 'any' }, modifiedMs } } as const;
    service.on(FINISH, loss, used).on(STAT, stored({ client_modified: '2001-02-02T03:04:05Z' }));
    expect(await remote.finishSession(commit)).toMatchObject({ modifiedMs });
    service
      .on(FINISH, loss, used)
      .on(STAT, stored({ server_modified: LONG_AGO, client_modified: '2001-02-02T03:04:05Z' }));
    await expect(remote.finishSession(commit)).rejects.toMatchObject({ failure: 'session-gone' });
  });

  test('and the session is used up, but other content is there', async () => {
    const { service, remote } = scripted;
    service.on(FINISH, loss, used).on(STAT, stored({ content_hash: 'b'.repeat(64) }));
    await expect(remote.finishSession(finishing)).rejects.toMatchObject({ failure: 'session-gone' });
  });
});

describe.each(LOSSES)('a new folder whose answer is lost: %s', (_what, loss) => {
  const CREATE = 'files/create_folder_v2';
  const folder = ok(tagged('folder', folderMetadata('/d')));
  const there = refuse(
    { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'folder' } } },
    'path/conflict/folder',
  );

  test('was made', async () => {
    scripted.service.on(CREATE, loss, there).on(STAT, folder);
    expect(await scripted.remote.createFolder(at('/d'))).toMatchObject({ kind: 'folder', path: '/d' });
  });

  test('was made after we looked', async () => {
    scripted.service.on(CREATE, loss, there).on(STAT, notFound, folder);
    expect(await scripted.remote.createFolder(at('/d'))).toMatchObject({ kind: 'folder' });
  });

  test('met a folder in another case, which was there before', async () => {
    scripted.service.on(CREATE, loss, there).on(STAT, folder);
    await expect(scripted.remote.createFolder(at('/D'))).rejects.toMatchObject({
      failure: 'conflict-folder',
    });
  });

  test('met a file', async () => {
    const file = refuse(
      { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'file' } } },
      'path/conflict/file',
    );
    scripted.service.on(CREATE, loss, file).on(STAT, stored());
    await expect(scripted.remote.createFolder(at('/f'))).rejects.toMatchObject({ failure: 'conflict-file' });
  });
});

test('a folder that was there before is a conflict when the service answers', async () => {
  scripted.service.on(
    'files/create_folder_v2',
    refuse(
      { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'folder' } } },
      'path/conflict/folder',
    ),
  );
  await expect(scripted.remote.createFolder(at('/d'))).rejects.toMatchObject({ failure: 'conflict-folder' });
});

describe.each(LOSSES)('a removal whose answer is lost: %s', (_what, loss) => {
  const gone = refuse(
    { '.tag': 'path_lookup', path_lookup: { '.tag': 'not_found' } },
    'path_lookup/not_found',
  );
  const DELETE = 'files/delete_v2';

  test('was done', async () => {
    scripted.service.on(DELETE, loss, gone).on(STAT, notFound);
    await scripted.remote.remove(at('/f'), { permanent: false });
    expect(scripted.service.callsOf(DELETE)).toHaveLength(1);
  });

  test('was done after we looked', async () => {
    scripted.service.on(DELETE, loss, gone).on(STAT, stored());
    await scripted.remote.remove(at('/f'), { permanent: false });
    expect(scripted.service.callsOf(DELETE)).toHaveLength(2);
  });

  test('does not take what came to the same place since', async () => {
    scripted.service
      .on(DELETE, loss, ok({ metadata: tagged('file', fileMetadata('/f')) }))
      .on(STAT, stored({ id: 'id:new' }));
    await scripted.remote.remove(at('/f'), { permanent: false, id: 'id:meant' });
    expect(scripted.service.callsOf(DELETE)).toHaveLength(1);
  });

  test('for good is asked for again, as it may have got only to the trash', async () => {
    scripted.service.on('files/permanently_delete', loss, ok(null)).on(STAT, notFound);
    await scripted.remote.remove(at('/f'), { permanent: true });
    expect(scripted.service.callsOf('files/permanently_delete')).toHaveLength(2);
  });

  test('for good was done', async () => {
    scripted.service.on('files/permanently_delete', loss, gone).on(STAT, notFound);
    await scripted.remote.remove(at('/f'), { permanent: true });
  });
});

test('nothing to remove is said so when the service answers', async () => {
  scripted.service.on(
    'files/delete_v2',
    refuse({ '.tag': 'path_lookup', path_lookup: { '.tag': 'not_found' } }, 'path_lookup/not_found'),
  );
  await expect(scripted.remote.remove(at('/f'), { permanent: false })).rejects.toMatchObject({
    failure: 'not-found',
  });
});

describe.each(LOSSES)('a move whose answer is lost: %s', (_what, loss) => {
  const MOVE = 'files/move_v2';
  const fromGone = refuse(
    { '.tag': 'from_lookup', from_lookup: { '.tag': 'not_found' } },
    'from_lookup/not_found',
  );
  const target = (id: string) => ok(tagged('folder', folderMetadata('/to', { id })));

  test('was done: the same id is at the target', async () => {
    const { service, remote } = scripted;
    service.on(MOVE, loss, fromGone).on(STAT, target('id:1'));
    expect(await remote.move(at('/from'), at('/to'), undefined, 'id:1')).toMatchObject({ path: '/to' });
    expect(service.routes).toEqual([MOVE, STAT]);
  });

  test('without the id it is asked for first', async () => {
    const { service, remote } = scripted;
    service
      .on(MOVE, loss, fromGone)
      .on(STAT, ok(tagged('folder', folderMetadata('/from', { id: 'id:1' }))), target('id:1'));
    expect(await remote.move(at('/from'), at('/to'))).toMatchObject({ id: 'id:1', path: '/to' });
  });

  test('was done after we looked', async () => {
    const { service, remote } = scripted;
    service.on(MOVE, loss, fromGone).on(STAT, notFound, target('id:1'));
    expect(await remote.move(at('/from'), at('/to'), undefined, 'id:1')).toMatchObject({ path: '/to' });
  });

  test('met something else at the target', async () => {
    const { service, remote } = scripted;
    const taken = refuse(
      { '.tag': 'to', to: { '.tag': 'conflict', conflict: { '.tag': 'folder' } } },
      'to/conflict/folder',
    );
    service.on(MOVE, loss, taken).on(STAT, target('id:2'));
    await expect(remote.move(at('/from'), at('/to'), undefined, 'id:1')).rejects.toMatchObject({
      failure: 'conflict-folder',
    });
  });
});

describe.each(LOSSES)('a copy whose answer is lost: %s', (_what, loss) => {
  const COPY = 'files/copy_v2';
  const taken = refuse(
    { '.tag': 'to', to: { '.tag': 'conflict', conflict: { '.tag': 'file' } } },
    'to/conflict/file',
  );
  /** Answers `get_metadata` by path. */
  const stats =
    (entries: Record<string, unknown>): Answer =>
    (response, call, request) => {
      const entry = entries[(call.arg as { path: string }).path];
      return (entry ? ok(entry) : notFound)(response, call, request);
    };
  const copy = () => scripted.remote.copy(at('/from'), at('/to'));
  const source = tagged('file', fileMetadata('/from', { content_hash: HASH, server_modified: LONG_AGO }));
  const made = (more = {}) =>
    tagged(
      'file',
      fileMetadata('/to', { id: 'id:copy', content_hash: HASH, server_modified: justNow(), ...more }),
    );

  test('was done: new, and with the same content', async () => {
    scripted.service.on(COPY, loss, taken).on(STAT, stats({ '/from': source, '/to': made() }));
    expect(await copy()).toMatchObject({ id: 'id:copy' });
  });

  test.each([
    ['other content', { content_hash: 'b'.repeat(64) }],
    ['the same content, but from long before', { server_modified: LONG_AGO }],
  ])('met %s', async (_there, more) => {
    scripted.service.on(COPY, loss, taken).on(STAT, stats({ '/from': source, '/to': made(more) }));
    await expect(copy()).rejects.toMatchObject({ failure: 'conflict-file' });
  });

  /** Answers `list_folder` with one file in it. */
  const listing =
    (hashes: Record<string, string>): Answer =>
    (response, call, request) => {
      const { path } = call.arg as { path: string };
      const file = fileMetadata(`${path}/inner/x`, { content_hash: hashes[path] });
      const entries = [
        tagged('folder', folderMetadata(path)),
        tagged('folder', folderMetadata(`${path}/inner`)),
        tagged('file', file),
      ];
      return ok({ entries, cursor: 'c', has_more: false })(response, call, request);
    };
  const folders = stats({
    '/from': tagged('folder', folderMetadata('/from', { id: 'id:1' })),
    '/to': tagged('folder', folderMetadata('/to', { id: 'id:2' })),
  });

  test('was done: a folder with all that the other one has', async () => {
    scripted.service
      .on(COPY, loss, taken)
      .on(STAT, folders)
      .on('files/list_folder', listing({ '/from': HASH, '/to': HASH }));
    expect(await copy()).toMatchObject({ kind: 'folder', id: 'id:2' });
  });

  test('met a folder with something else in it', async () => {
    scripted.service
      .on(COPY, loss, taken)
      .on(STAT, folders)
      .on('files/list_folder', listing({ '/from': HASH, '/to': 'b'.repeat(64) }));
    await expect(copy()).rejects.toMatchObject({ failure: 'conflict-file' });
  });
});

describe('links', () => {
  const CREATE = 'sharing/create_shared_link_with_settings';
  const exists = refuse({ '.tag': 'shared_link_already_exists' }, 'shared_link_already_exists');
  const link = {
    '.tag': 'file',
    url: 'https://files.example/s/1',
    name: 'f',
    link_permissions: { resolved_visibility: { '.tag': 'public' } },
  };

  test('one whose answer was lost is the one that is there', async () => {
    scripted.service
      .on(CREATE, lose, exists)
      .on('sharing/list_shared_links', ok({ links: [link], has_more: false }));
    expect(await scripted.remote.createSharedLink(at('/f'), {})).toMatchObject({ url: link.url });
  });

  test('but not one with other settings', async () => {
    scripted.service
      .on(CREATE, lose, exists)
      .on('sharing/list_shared_links', ok({ links: [link], has_more: false }));
    await expect(
      scripted.remote.createSharedLink(at('/f'), { visibility: 'password', password: 'x' }),
    ).rejects.toMatchObject({ failure: 'link-exists' });
  });

  test('one whose revocation was not acknowledged is gone', async () => {
    scripted.service.on(
      'sharing/revoke_shared_link',
      lose,
      refuse({ '.tag': 'shared_link_not_found' }, 'shared_link_not_found'),
    );
    await scripted.remote.revokeSharedLink(link.url);
  });
});
