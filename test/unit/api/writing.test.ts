import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WriteMode } from '../../../src/api/remote.ts';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  json,
  lose,
  ok,
  refuse,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const UPLOAD = 'files/upload';
const APPEND = 'files/upload_session/append_v2';
const BODY = new TextEncoder().encode('abc');
const HASH = contentHashOf(BODY);

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

const stored = ok(fileMetadata('/f', { content_hash: HASH }));
const upload = (mode: WriteMode = { if: 'any' }, modifiedMs?: number) =>
  scripted.remote.upload(at('/f'), BODY, { mode, ...(modifiedMs !== undefined && { modifiedMs }) });

describe('an upload', () => {
  test.each<[WriteMode, Record<string, unknown>]>([
    [{ if: 'any' }, { mode: { '.tag': 'overwrite' }, strict_conflict: false }],
    [{ if: 'absent' }, { mode: { '.tag': 'add' }, strict_conflict: true }],
    [
      { if: 'rev', rev: '015f' },
      { mode: { '.tag': 'update', update: '015f' }, strict_conflict: true },
    ],
  ])('has its condition checked by the service: %o', async (mode, arg) => {
    scripted.service.on(UPLOAD, stored);
    await upload(mode, Date.UTC(2020, 1, 2, 3, 4, 5, 999));
    const [call] = scripted.service.calls;
    expect(call?.arg).toEqual({
      path: '/f',
      autorename: false,
      mute: false,
      client_modified: '2020-02-02T03:04:05Z',
      content_hash: HASH,
      ...arg,
    });
    expect(call?.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '3',
    });
    expect(call?.body.toString()).toBe('abc');
  });

  test('of nothing has a type and a length too', async () => {
    const empty = contentHashOf(new Uint8Array());
    scripted.service.on(UPLOAD, ok(fileMetadata('/f', { size: 0, content_hash: empty })));
    await scripted.remote.upload(at('/f'), new Uint8Array(), { mode: { if: 'any' } });
    expect(scripted.service.calls[0]?.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '0',
    });
  });

  test('of many bytes arrives whole, again after a loss too', async () => {
    const big = new Uint8Array(3_000_001).map((_, index) => index % 251);
    const content_hash = contentHashOf(big);
    scripted.service
      .on(UPLOAD, text(503, ''), ok(fileMetadata('/f', { size: big.length, content_hash })))
      .on('files/get_metadata', refuse({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found'));
    await scripted.remote.upload(at('/f'), big, { mode: { if: 'any' } });
    const bodies = scripted.service.callsOf(UPLOAD).map(({ body }) => contentHashOf(body));
    expect(bodies).toEqual([content_hash, content_hash]);
  });

  test.each([
    ['another hash', { content_hash: 'f'.repeat(64) }],
    ['another size', { content_hash: HASH, size: 4 }],
  ])('that the service stored with %s is no success', async (_what, more) => {
    scripted.service.on(UPLOAD, ok(fileMetadata('/f', more)));
    await expect(upload()).rejects.toMatchObject({ failure: 'hash-mismatch' });
  });

  test('that was damaged on its way is sent again', async () => {
    const damaged = refuse({ '.tag': 'content_hash_mismatch' }, 'content_hash_mismatch');
    scripted.service.on(UPLOAD, damaged, stored);
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
    expect(scripted.service.routes).toEqual([UPLOAD, UPLOAD]);
  });

  test.each<[string, Answer]>([
    [
      'as 429',
      json(429, {
        error_summary: 'too_many_write_operations/',
        error: { reason: { '.tag': 'too_many_write_operations' }, retry_after: 1 },
      }),
    ],
    [
      'deep in a 409',
      refuse(
        { '.tag': 'path', reason: { '.tag': 'too_many_write_operations' } },
        'path/too_many_write_operations',
      ),
    ],
  ])('that met another writer waits a second: %s', async (_how, answer) => {
    const { service, clock } = scripted;
    service.on(UPLOAD, answer, stored);
    const uploading = upload({ if: 'absent' });
    await clock.untilSleeping();
    await clock.advance(999);
    expect(service.calls).toHaveLength(1);
    await clock.advance(1);
    expect(await uploading).toMatchObject({ path: '/f' });
    expect(service.routes).toEqual([UPLOAD, UPLOAD]);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['malformed_path', {}, 'malformed-path'],
    ['conflict', { conflict: { '.tag': 'file' } }, 'conflict-file'],
    ['conflict', { conflict: { '.tag': 'folder' } }, 'conflict-folder'],
    ['conflict', { conflict: { '.tag': 'file_ancestor' } }, 'conflict-ancestor'],
    ['conflict', { conflict: { '.tag': 'other' } }, 'conflict-file'],
    ['no_write_permission', {}, 'no-permission'],
    ['insufficient_space', {}, 'insufficient-space'],
    ['disallowed_name', {}, 'disallowed-name'],
    ['team_folder', {}, 'no-permission'],
  ])('refused for %s %o', async (tag, more, failure) => {
    const reason = { '.tag': tag, ...more };
    scripted.service.on(UPLOAD, refuse({ '.tag': 'path', reason, upload_session_id: 's' }, `path/${tag}`));
    await expect(upload()).rejects.toMatchObject({ failure, details: { summary: `path/${tag}` } });
    expect(scripted.service.calls).toHaveLength(1);
  });

  test('too large for one call', async () => {
    scripted.service.on(UPLOAD, refuse({ '.tag': 'payload_too_large' }, 'payload_too_large'));
    await expect(upload()).rejects.toMatchObject({ failure: 'too-large' });
  });

  describe('several at once', () => {
    /** Answers each after a moment; how many were under way at once at most. */
    function crowded(answerOf: (underWay: number) => Answer) {
      const seen = { underWay: 0, most: 0 };
      scripted.service.on(UPLOAD, (response, call, request) => {
        seen.underWay += 1;
        seen.most = Math.max(seen.most, seen.underWay);
        const answer = answerOf(seen.underWay);
        setTimeout(() => {
          seen.underWay -= 1;
          void answer(response, call, request);
        }, 20);
      });
      return seen;
    }
    const many = (count: number) => Promise.all(Array.from({ length: count }, () => upload()));
    const refused = json(429, {
      error_summary: 'too_many_write_operations/',
      error: { reason: { '.tag': 'too_many_write_operations' }, retry_after: 1 },
    });

    test('go side by side, more and more, where the service takes that', async () => {
      const seen = crowded(() => stored);
      await many(2);
      expect(seen.most).toBe(2);
      await many(40);
      expect(seen.most).toBe(8);
      expect(scripted.remote.uploadsAtOnce()).toBe(8);
    });

    test('go one by one once the service has refused one, which is tried again at once', async () => {
      const { service, clock, log } = scripted;
      const seen = crowded((underWay) => (underWay > 1 ? refused : stored));
      // No time passes: nobody waits the second that the service asks for.
      await many(2);
      expect(service.callsOf(UPLOAD).length).toBeLessThanOrEqual(5);
      expect(scripted.remote.uploadsAtOnce()).toBe(1);
      const before = service.callsOf(UPLOAD).length;
      seen.most = 0;
      await many(6);
      expect([seen.most, service.callsOf(UPLOAD).length - before]).toEqual([1, 6]);
      expect(log.lines).toEqual([]);
      await clock.advance(3_600_000);
      expect(scripted.remote.uploadsAtOnce()).toBe(2);
    });

    test('go one by one once the service limits calls', async () => {
      scripted.service.on(UPLOAD, text(429, 'Too many requests.', { 'retry-after': '1' }), stored);
      await scripted.clock.during(upload());
      expect(scripted.remote.uploadsAtOnce()).toBe(1);
    });
  });
});

describe('a session', () => {
  const session = { id: 'pid_upload_session:1' };
  const part = { offset: 4_194_304, bytes: BODY, last: true };

  test('is concurrent, and begins empty', async () => {
    scripted.service.on('files/upload_session/start', ok({ session_id: session.id }));
    expect(await scripted.remote.startSession()).toEqual(session);
    const [call] = scripted.service.calls;
    expect(call?.arg).toEqual({ session_type: { '.tag': 'concurrent' } });
    expect(call?.body).toHaveLength(0);
  });

  test('has each part hashed, and ends with the last', async () => {
    scripted.service.on(APPEND, ok(null));
    await scripted.remote.appendSession(session, part);
    await scripted.remote.appendSession(session, { ...part, last: false, contentHash: 'e'.repeat(64) });
    const cursor = { session_id: session.id, offset: 4_194_304 };
    expect(scripted.service.calls.map(({ arg }) => arg)).toEqual([
      { cursor, close: true, content_hash: HASH },
      { cursor, close: false, content_hash: 'e'.repeat(64) },
    ]);
  });

  test.each<[string, Answer]>([
    ['cut', lose],
    ['500', text(500, '')],
    ['a page of some proxy', text(200, '<html>log in</html>')],
  ])('takes a part again whose answer was lost, and one that had closed it: %s', async (_what, loss) => {
    scripted.service.on(APPEND, loss, refuse({ '.tag': 'closed' }, 'closed'));
    await scripted.remote.appendSession(session, part);
    expect(scripted.service.callsOf(APPEND)).toHaveLength(2);
  });

  const behind = (correct_offset: number) =>
    refuse({ '.tag': 'incorrect_offset', correct_offset }, 'incorrect_offset');
  const appended = () =>
    scripted.service.callsOf(APPEND).map(({ arg, body }) => {
      const { cursor, close, content_hash } = arg as {
        cursor: { offset: number };
        close: boolean;
        content_hash: string;
      };
      return [cursor.offset, String(body), close, content_hash === contentHashOf(body)];
    });
  const long = { offset: 8, bytes: Buffer.from('abcdefgh'), last: false };

  test('goes on with a part where the service says that it stopped', async () => {
    scripted.service.on(APPEND, lose, behind(11), behind(13), ok(null));
    await scripted.remote.appendSession(session, long);
    expect(appended()).toEqual([
      [8, 'abcdefgh', false, true],
      [8, 'abcdefgh', false, true],
      [11, 'defgh', false, true],
      [13, 'fgh', false, true],
    ]);
  });

  test('sends nothing again of a part that it has whole, but closes with the last one', async () => {
    scripted.service.on(APPEND, lose, behind(16));
    await scripted.remote.appendSession(session, long);
    expect(appended()).toHaveLength(2);
    scripted.service.on(APPEND, lose, behind(16), ok(null));
    await scripted.remote.appendSession(session, { ...long, last: true });
    expect(appended().at(-1)).toEqual([16, '', true, true]);
  });

  test.each([7, 8, 17])('does not believe an offset outside of the part: %d', async (offset) => {
    scripted.service.on(APPEND, behind(offset));
    await expect(scripted.remote.appendSession(session, long)).rejects.toMatchObject({
      failure: 'incorrect-offset',
      details: { correctOffset: offset },
    });
    expect(appended()).toHaveLength(1);
  });

  test('that is closed takes no part that was not sent before', async () => {
    scripted.service.on(APPEND, refuse({ '.tag': 'closed' }, 'closed'));
    await expect(scripted.remote.appendSession(session, part)).rejects.toMatchObject({
      failure: 'session-gone',
    });
    scripted.service.on(APPEND, lose, refuse({ '.tag': 'closed' }, 'closed'));
    const middle = scripted.remote.appendSession(session, { ...part, last: false });
    await expect(middle).rejects.toMatchObject({ failure: 'session-gone' });
  });

  test.each<[string, Record<string, unknown>, object]>([
    ['not_found', {}, { failure: 'session-gone' }],
    [
      'incorrect_offset',
      { correct_offset: 9 },
      { failure: 'incorrect-offset', details: { correctOffset: 9 } },
    ],
    ['too_large', {}, { failure: 'too-large' }],
    ['concurrent_session_invalid_offset', {}, { failure: 'bad-request' }],
    ['insufficient_space', {}, { failure: 'insufficient-space' }],
  ])('refuses a part: %s', async (tag, more, error) => {
    scripted.service.on(APPEND, refuse({ '.tag': tag, ...more }, tag));
    await expect(scripted.remote.appendSession(session, part)).rejects.toMatchObject(error);
  });

  test.each<[Record<string, unknown>, object]>([
    [{ '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } }, { failure: 'session-gone' }],
    [
      { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'incorrect_offset', correct_offset: 5 } },
      { failure: 'incorrect-offset', details: { correctOffset: 5 } },
    ],
    [{ '.tag': 'path', path: { '.tag': 'insufficient_space' } }, { failure: 'insufficient-space' }],
    [
      { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'folder' } } },
      { failure: 'conflict-folder' },
    ],
    [{ '.tag': 'concurrent_session_missing_data' }, { failure: 'bad-request' }],
  ])('refuses its commit: %o', async (error, failure) => {
    scripted.service.on('files/upload_session/finish', refuse(error, 'x'));
    const commit = { session, sizeBytes: 3, path: at('/f'), options: { mode: { if: 'absent' } } } as const;
    await expect(scripted.remote.finishSession(commit)).rejects.toMatchObject(failure);
  });

  test('that is used up, as we heard, though our content is there: that is for the caller to judge', async () => {
    const used = refuse(
      { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } },
      'lookup_failed/not_found',
    );
    scripted.service
      .on('files/upload_session/finish', used)
      .on('files/get_metadata', ok(tagged('file', fileMetadata('/f', { content_hash: HASH }))));
    const commit = {
      session,
      sizeBytes: 3,
      contentHash: HASH,
      path: at('/f'),
      options: { mode: { if: 'any' } },
    } as const;
    await expect(scripted.remote.finishSession(commit)).rejects.toMatchObject({ failure: 'session-gone' });
    expect(scripted.service.routes).toEqual(['files/upload_session/finish']);
  });
});

describe('changes of the tree', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['from_lookup', { from_lookup: { '.tag': 'not_found' } }, 'not-found'],
    ['from_write', { from_write: { '.tag': 'no_write_permission' } }, 'no-permission'],
    ['to', { to: { '.tag': 'conflict', conflict: { '.tag': 'folder' } } }, 'conflict-folder'],
    ['to', { to: { '.tag': 'malformed_path' } }, 'malformed-path'],
    ['cant_move_folder_into_itself', {}, 'into-itself'],
    ['duplicated_or_nested_paths', {}, 'into-itself'],
    ['too_many_files', {}, 'too-many-files'],
    ['insufficient_quota', {}, 'insufficient-space'],
    ['cant_copy_shared_folder', {}, 'no-permission'],
    ['cant_move_into_vault', { cant_move_into_vault: { '.tag': 'is_shared_folder' } }, 'no-permission'],
  ])('a copy refused for %s %o', async (tag, more, failure) => {
    scripted.service.on('files/copy_v2', refuse({ '.tag': tag, ...more }, tag));
    await expect(scripted.remote.copy(at('/a'), at('/b'))).rejects.toMatchObject({ failure });
  });

  test.each<[string, Answer, string]>([
    [
      'an app that may not',
      text(400, 'Error in call: Your API app is not allowed to call this function.'),
      'not-allowed',
    ],
    [
      'a token that may not',
      json(401, {
        error_summary: 'missing_scope/',
        error: { '.tag': 'missing_scope', required_scope: 'files.permanent_delete' },
      }),
      'not-allowed',
    ],
    [
      'an account that may not',
      json(403, {
        error_summary: 'x/',
        error: { '.tag': 'invalid_account_type', invalid_account_type: { '.tag': 'feature' } },
      }),
      'not-allowed',
    ],
    [
      'an entry that must stay',
      refuse(
        { '.tag': 'path_write', path_write: { '.tag': 'no_write_permission' } },
        'path_write/no_write_permission',
      ),
      'no-permission',
    ],
    ['too much at once', refuse({ '.tag': 'too_many_files' }, 'too_many_files'), 'too-many-files'],
  ])('a removal for good refused: %s', async (_why, answer, failure) => {
    scripted.service.on('files/permanently_delete', answer);
    await expect(scripted.remote.remove(at('/f'), { permanent: true })).rejects.toMatchObject({ failure });
  });

  test("a proxy's page in place of the service's answer is no success", async () => {
    await scripted.close();
    scripted = await openScripted({ random: () => 0.9 });
    const page = text(200, '<html>log in</html>');
    const there = ok(tagged('file', fileMetadata('/f')));
    for (const permanent of [true, false]) {
      scripted.service
        .on('files/permanently_delete', page)
        .on('files/delete_v2', page)
        .on('files/get_metadata', there);
      const removed = scripted.remote.remove(at('/f'), { permanent });
      await expect(scripted.clock.during(removed)).rejects.toMatchObject({ failure: 'unavailable' });
    }
  });
});
