import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { contentHashOf } from '../../../../src/util/content-hash.ts';
import { at, openScripted, type Scripted } from '../../../support/scripted-remote.ts';
import { fileMetadata, LOSSES, lose, ok, refuse, tagged } from '../../../support/scripted-service.ts';
import { BODY, HASH } from '../../../support/uploaded-file.ts';

const APPEND = 'files/upload_session/append_v2';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

describe('upload sessions', () => {
  const session = { id: 'pid_upload_session:1' };
  const part = { offset: 4_194_304, bytes: BODY, last: true };

  test('startSession starts a concurrent session without content', async () => {
    scripted.service.on('files/upload_session/start', ok({ session_id: session.id }));
    expect(await scripted.uploads.startSession()).toEqual(session);
    const [call] = scripted.service.calls;
    expect(call?.arg).toEqual({ session_type: { '.tag': 'concurrent' } });
    expect(call?.body).toHaveLength(0);
  });

  test('appendSession sends each part with its hash, and closes the session with the last part', async () => {
    scripted.service.on(APPEND, ok(null));
    await scripted.uploads.appendSession(session, part);
    await scripted.uploads.appendSession(session, { ...part, last: false, contentHash: 'e'.repeat(64) });
    const cursor = { session_id: session.id, offset: 4_194_304 };
    expect(scripted.service.calls.map(({ arg }) => arg)).toEqual([
      { cursor, close: true, content_hash: HASH },
      { cursor, close: false, content_hash: 'e'.repeat(64) },
    ]);
  });

  test.each(LOSSES)(
    'appendSession whose answer was lost sends the part again and takes a closed session for success: %s',
    async (_what, loss) => {
      scripted.service.on(APPEND, loss, refuse({ '.tag': 'closed' }, 'closed'));
      await scripted.uploads.appendSession(session, part);
      expect(scripted.service.callsOf(APPEND)).toHaveLength(2);
    },
  );

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

  test('appendSession continues a part at the offset that the service reports', async () => {
    scripted.service.on(APPEND, lose, behind(11), behind(13), ok(null));
    await scripted.uploads.appendSession(session, long);
    expect(appended()).toEqual([
      [8, 'abcdefgh', false, true],
      [8, 'abcdefgh', false, true],
      [11, 'defgh', false, true],
      [13, 'fgh', false, true],
    ]);
  });

  test('appendSession sends nothing again of a complete part, and closes the session after the last one', async () => {
    scripted.service.on(APPEND, lose, behind(16));
    await scripted.uploads.appendSession(session, long);
    expect(appended()).toHaveLength(2);
    scripted.service.on(APPEND, lose, behind(16), ok(null));
    await scripted.uploads.appendSession(session, { ...long, last: true });
    expect(appended().at(-1)).toEqual([16, '', true, true]);
  });

  test.each([7, 8, 17])(
    'appendSession fails with incorrect-offset when the service reports the offset %d outside of the part',
    async (offset) => {
      scripted.service.on(APPEND, behind(offset));
      await expect(scripted.uploads.appendSession(session, long)).rejects.toMatchObject({
        failure: 'incorrect-offset',
        details: { correctOffset: offset },
      });
      expect(appended()).toHaveLength(1);
    },
  );

  test('appendSession to a closed session fails with session-gone unless it repeats the last part', async () => {
    scripted.service.on(APPEND, refuse({ '.tag': 'closed' }, 'closed'));
    await expect(scripted.uploads.appendSession(session, part)).rejects.toMatchObject({
      failure: 'session-gone',
    });
    scripted.service.on(APPEND, lose, refuse({ '.tag': 'closed' }, 'closed'));
    const middle = scripted.uploads.appendSession(session, { ...part, last: false });
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
  ])('appendSession refused for %s fails with the right failure', async (tag, more, error) => {
    scripted.service.on(APPEND, refuse({ '.tag': tag, ...more }, tag));
    await expect(scripted.uploads.appendSession(session, part)).rejects.toMatchObject(error);
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
  ])('finishSession refused with %o fails with the right failure', async (error, failure) => {
    scripted.service.on('files/upload_session/finish', refuse(error, 'x'));
    const commit = { session, sizeBytes: 3, path: at('/f'), options: { mode: { if: 'absent' } } } as const;
    await expect(scripted.uploads.finishSession(commit)).rejects.toMatchObject(failure);
  });

  test.each([
    ['another hash', { content_hash: 'f'.repeat(64) }],
    ['another size', { content_hash: HASH, size: 4 }],
  ])('finishSession fails with hash-mismatch when the service stored %s', async (_what, stored) => {
    scripted.service.on('files/upload_session/finish', ok(fileMetadata('/f', stored)));
    const options = { mode: { if: 'any' } } as const;
    const commit = { session, sizeBytes: 3, contentHash: HASH, path: at('/f'), options };
    await expect(scripted.uploads.finishSession(commit)).rejects.toMatchObject({ failure: 'hash-mismatch' });
  });

  test('finishSession fails with session-gone for a used session, although our content is at the path', async () => {
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
    await expect(scripted.uploads.finishSession(commit)).rejects.toMatchObject({ failure: 'session-gone' });
    expect(scripted.service.routes).toEqual(['files/upload_session/finish']);
  });
});
