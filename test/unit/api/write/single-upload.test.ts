import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WriteMode } from '../../../../src/api/remote.ts';
import { contentHashOf } from '../../../../src/util/content-hash.ts';
import { at, openScripted, type Scripted } from '../../../support/scripted-remote.ts';
import { type Answer, fileMetadata, json, ok, refuse, text } from '../../../support/scripted-service.ts';
import { BODY, HASH } from '../../../support/uploaded-file.ts';

const UPLOAD = 'files/upload';
const uploaded = ok(fileMetadata('/f', { content_hash: HASH }));

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

const upload = (mode: WriteMode = { if: 'any' }, modifiedMs?: number) =>
  scripted.uploads.upload(at('/f'), BODY, { mode, ...(modifiedMs !== undefined && { modifiedMs }) });

describe('single uploads', () => {
  test.each<[WriteMode, Record<string, unknown>]>([
    [{ if: 'any' }, { mode: { '.tag': 'overwrite' }, strict_conflict: false }],
    [{ if: 'absent' }, { mode: { '.tag': 'add' }, strict_conflict: true }],
    [
      { if: 'rev', rev: '015f' },
      { mode: { '.tag': 'update', update: '015f' }, strict_conflict: true },
    ],
  ])("an upload sends its condition %o as the service's write mode", async (mode, arg) => {
    scripted.service.on(UPLOAD, uploaded);
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

  test('an empty upload has a content type and a length', async () => {
    const empty = contentHashOf(new Uint8Array());
    scripted.service.on(UPLOAD, ok(fileMetadata('/f', { size: 0, content_hash: empty })));
    await scripted.uploads.upload(at('/f'), new Uint8Array(), { mode: { if: 'any' } });
    expect(scripted.service.calls[0]?.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '0',
    });
  });

  test('an upload sends the content hash that was computed while its body was read', async () => {
    scripted.service.on(UPLOAD, uploaded);
    const contentHash = contentHashOf(Buffer.from('the bytes before they were damaged in memory'));
    const damaged = scripted.uploads.upload(at('/f'), BODY, { mode: { if: 'any' }, contentHash });
    await expect(damaged).rejects.toMatchObject({ failure: 'hash-mismatch' });
    expect(scripted.service.calls[0]?.arg).toMatchObject({ content_hash: contentHash });
  });

  test('an upload of 3 MB arrives complete, also when it is repeated', async () => {
    const big = new Uint8Array(3_000_001).map((_, index) => index % 251);
    const content_hash = contentHashOf(big);
    scripted.service
      .on(UPLOAD, text(503, ''), ok(fileMetadata('/f', { size: big.length, content_hash })))
      .on('files/get_metadata', refuse({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found'));
    await scripted.uploads.upload(at('/f'), big, { mode: { if: 'any' } });
    const bodies = scripted.service.callsOf(UPLOAD).map(({ body }) => contentHashOf(body));
    expect(bodies).toEqual([content_hash, content_hash]);
  });

  test.each([
    ['another hash', { content_hash: 'f'.repeat(64) }],
    ['another size', { content_hash: HASH, size: 4 }],
    ['no hash and another size', { content_hash: undefined, size: 4 }],
  ])('an upload stored with %s fails with hash-mismatch', async (_what, more) => {
    scripted.service.on(UPLOAD, ok(fileMetadata('/f', more)));
    await expect(upload()).rejects.toMatchObject({ failure: 'hash-mismatch' });
  });

  test('an upload that was damaged in transit is sent again', async () => {
    const damaged = refuse({ '.tag': 'content_hash_mismatch' }, 'content_hash_mismatch');
    scripted.service.on(UPLOAD, damaged, uploaded);
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
    expect(scripted.service.routes).toEqual([UPLOAD, UPLOAD]);
  });

  test.each<[string, Answer]>([
    [
      'a 429',
      json(429, {
        error_summary: 'too_many_write_operations/',
        error: { reason: { '.tag': 'too_many_write_operations' }, retry_after: 1 },
      }),
    ],
    [
      'the reason of a 409',
      refuse(
        { '.tag': 'path', reason: { '.tag': 'too_many_write_operations' } },
        'path/too_many_write_operations',
      ),
    ],
  ])('an upload that meets contention in %s is retried after a second', async (_how, answer) => {
    const { service, clock } = scripted;
    service.on(UPLOAD, answer, uploaded);
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
  ])(
    "an upload refused for %s %o fails with the right failure and the service's summary",
    async (tag, more, failure) => {
      const reason = { '.tag': tag, ...more };
      scripted.service.on(UPLOAD, refuse({ '.tag': 'path', reason, upload_session_id: 's' }, `path/${tag}`));
      await expect(upload()).rejects.toMatchObject({ failure, details: { summary: `path/${tag}` } });
      expect(scripted.service.calls).toHaveLength(1);
    },
  );

  test('an upload that is too large for one call fails with too-large', async () => {
    scripted.service.on(UPLOAD, refuse({ '.tag': 'payload_too_large' }, 'payload_too_large'));
    await expect(upload()).rejects.toMatchObject({ failure: 'too-large' });
  });
});
