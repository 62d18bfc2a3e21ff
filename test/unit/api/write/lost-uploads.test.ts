import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { partsOf } from '../../../../src/api/long-names.ts';
import type { WriteMode } from '../../../../src/api/remote.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { at, openScripted, type Scripted } from '../../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  LOSSES,
  lose,
  notFound,
  ok,
  refuse,
  tagged,
} from '../../../support/scripted-service.ts';
import { afterTheCall, BODY, HASH, LONG_AGO, STAT, stored } from '../../../support/uploaded-file.ts';

const OLD_REV = '0000000000001';

const conflict = refuse(
  { '.tag': 'path', reason: { '.tag': 'conflict', conflict: { '.tag': 'file' } }, upload_session_id: 's' },
  'path/conflict/file',
);

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
  scripted.service.on('files/list_revisions', notFound);
});
afterEach(() => scripted.close());

describe.each(LOSSES)('an upload whose answer is lost: %s', (_what, loss) => {
  const upload = (mode: WriteMode) => scripted.uploads.upload(at('/f'), BODY, { mode });

  test.each<WriteMode>([{ if: 'any' }, { if: 'absent' }, { if: 'rev', rev: OLD_REV }])(
    'an upload whose answer was lost succeeds without a repeat when its content is there (%o)',
    async (mode) => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, stored());
      expect(await upload(mode)).toMatchObject({ path: '/f', contentHash: HASH });
      expect(service.callsOf('files/upload')).toHaveLength(1);
    },
  );

  test('an upload whose answer was lost is sent again when the file is not there', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, ok(fileMetadata('/f', { content_hash: HASH }))).on(STAT, notFound);
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
    expect(service.callsOf('files/upload')).toHaveLength(2);
  });

  test('an upload whose answer was lost succeeds when its repeat conflicts with its own content', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, notFound, stored());
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
    expect(service.routes).toEqual(['files/upload', STAT, 'files/upload', STAT]);
  });

  test('an upload whose answer was lost fails with conflict-file when other content is there', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, stored({ content_hash: 'b'.repeat(64) }));
    await expect(upload({ if: 'rev', rev: OLD_REV })).rejects.toMatchObject({ failure: 'conflict-file' });
  });

  describe('a lost upload that was replaced by another client', () => {
    const theirs = fileMetadata('/f', { rev: '00000000000c', content_hash: 'b'.repeat(64) });
    const base = fileMetadata('/f', { rev: OLD_REV, server_modified: LONG_AGO });
    const history = (...entries: object[]) => ok({ is_deleted: false, entries, has_more: false });
    const revision = (more: Record<string, unknown>) =>
      fileMetadata('/f', {
        rev: '00000000000b',
        content_hash: HASH,
        server_modified: afterTheCall(),
        ...more,
      });

    test.each<[string, WriteMode]>([
      ['absent', { if: 'absent' }],
      ['rev', { if: 'rev', rev: OLD_REV }],
    ])(
      'an upload whose answer was lost succeeds when its revision is in the history (%s)',
      async (_mode, mode) => {
        const { service } = scripted;
        service.on('files/upload', loss, conflict).on(STAT, ok(tagged('file', theirs)));
        service.on('files/list_revisions', history(theirs, revision({}), base));
        expect(await upload(mode)).toMatchObject({ rev: '00000000000b' });
        expect(service.callsOf('files/upload')).toHaveLength(2);
      },
    );

    test('an upload whose answer was lost succeeds when its revision is in the history of a deleted file', async () => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, notFound);
      service.on('files/list_revisions', history(revision({}), base));
      expect(await upload({ if: 'rev', rev: OLD_REV })).toMatchObject({ rev: '00000000000b' });
    });

    test.each([
      ['was written long before', revision({ server_modified: LONG_AGO })],
      ['has other content', revision({ content_hash: 'c'.repeat(64) })],
    ])(
      'an upload whose answer was lost fails with conflict-file when the revision in the history %s',
      async (_what, other) => {
        const { service } = scripted;
        service.on('files/upload', loss, conflict).on(STAT, ok(tagged('file', theirs)));
        service.on('files/list_revisions', history(theirs, other, base));
        await expect(upload({ if: 'rev', rev: OLD_REV })).rejects.toMatchObject({ failure: 'conflict-file' });
      },
    );

    test('an upload whose answer was lost fails with conflict-file when the matching revision is older than its base', async () => {
      const { service } = scripted;
      service.on('files/upload', loss, conflict).on(STAT, ok(tagged('file', theirs)));
      service.on('files/list_revisions', history(theirs, base, revision({})));
      await expect(upload({ if: 'rev', rev: OLD_REV })).rejects.toMatchObject({ failure: 'conflict-file' });
    });
  });

  test('a create whose answer was lost fails with conflict-file when the file there differs in letter case', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, stored({ name: 'F', path_display: '/F' }));
    await expect(upload({ if: 'absent' })).rejects.toMatchObject({ failure: 'conflict-file' });
  });

  test('a create with a long name whose answer was lost succeeds when only an older part of its name differs in letter case', async () => {
    const { service, uploads } = scripted;
    const [part = '', last = ''] = partsOf('a'.repeat(300));
    const place = { name: last, path_display: `/${part.toUpperCase()}/${last}` };
    service.on('files/upload', loss, conflict).on(STAT, stored({ ...place, path_lower: `/${part}/${last}` }));
    const made = await uploads.upload(at(`/${'a'.repeat(300)}`), BODY, { mode: { if: 'absent' } });
    expect(made).toMatchObject({ contentHash: HASH });
  });

  test('an upload whose answer was lost is sent again when its file cannot be looked up', async () => {
    const { service } = scripted;
    const forbidden = refuse(
      { '.tag': 'path', path: { '.tag': 'restricted_content' } },
      'path/restricted_content',
    );
    service.on('files/upload', loss, ok(fileMetadata('/f', { content_hash: HASH }))).on(STAT, forbidden);
    expect(await upload({ if: 'absent' })).toMatchObject({ contentHash: HASH });
  });

  test('a create whose answer was lost fails with conflict-file when equal content was there long before', async () => {
    const { service } = scripted;
    service.on('files/upload', loss, conflict).on(STAT, stored({ server_modified: LONG_AGO }));
    await expect(upload({ if: 'absent' })).rejects.toMatchObject({ failure: 'conflict-file' });
  });
});

describe('uploads', () => {
  test('an upload whose last answer is lost at the deadline is still looked up', async () => {
    await scripted.close();
    scripted = await openScripted({ random: () => 0.9 });
    const { service, uploads, clock } = scripted;
    // The waits are 450, 900, 1800, 3600 and 7200 ms; one more would pass the deadline of 25 s.
    const tries = 6;
    service.on('files/upload', lose).on(STAT, (response, call, request) => {
      const done = service.callsOf('files/upload').length === tries;
      return (done ? stored() : notFound)(response, call, request);
    });
    const upload = uploads.upload(at('/f'), BODY, { mode: { if: 'absent' } });
    expect(await clock.during(upload)).toMatchObject({ contentHash: HASH });
    expect(clock.now() - Date.UTC(2026, 0, 1)).toBe(13_950);
  });

  test("an upload whose answer was lost is recognized although our clock is far ahead of the service's", async () => {
    await scripted.close();
    scripted = await openScripted({ clock: new ManualClock(Date.UTC(2100, 0, 1)) });
    scripted.service.on('files/upload', lose, conflict).on(STAT, stored());
    expect(await scripted.uploads.upload(at('/f'), BODY, { mode: { if: 'absent' } })).toMatchObject({
      contentHash: HASH,
    });
  });

  test.each([-3_600_000, 3_600_000])(
    'an upload whose answer was lost is recognized although the wall clock moved by %i ms meanwhile',
    async (step) => {
      await scripted.close();
      scripted = await openScripted({ random: () => 0.9 });
      const { service, uploads, clock } = scripted;
      const justNow = () => new Date().toISOString().replace(/\.\d+Z$/, 'Z');
      const committed: Answer = (...call) => stored({ server_modified: justNow() })(...call);
      service.on('files/upload', lose, conflict).on(STAT, committed);
      const upload = uploads.upload(at('/f'), BODY, { mode: { if: 'absent' } });
      await clock.untilSleeping();
      clock.stepWall(step);
      expect(await clock.during(upload)).toMatchObject({ contentHash: HASH });
    },
  );

  test('an upload that cannot have arrived is not looked up', async () => {
    const gone = await openScripted();
    await gone.close();
    await scripted.close();
    scripted = await openScripted({ contentUrl: gone.service.url, random: () => 0.9 });
    const upload = scripted.uploads.upload(at('/f'), BODY, { mode: { if: 'absent' } });
    await expect(scripted.clock.during(upload)).rejects.toMatchObject({ failure: 'offline' });
    expect(scripted.service.calls).toEqual([]);
  });

  test('an upload that was refused is not looked up', async () => {
    const { service, uploads } = scripted;
    service.on('files/upload', conflict);
    await expect(uploads.upload(at('/f'), BODY, { mode: { if: 'absent' } })).rejects.toMatchObject({
      failure: 'conflict-file',
    });
    expect(service.routes).toEqual(['files/upload']);
  });

  test('an upload of the revision and content that are already there succeeds despite the strict conflict', async () => {
    const { service, uploads } = scripted;
    service.on('files/upload', conflict).on(STAT, stored({ rev: OLD_REV, server_modified: LONG_AGO }));
    const mode = { if: 'rev', rev: OLD_REV } as const;
    expect(await uploads.upload(at('/f'), BODY, { mode })).toMatchObject({ rev: OLD_REV });
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

  test('a session commit whose answer was lost succeeds when its content is there', async () => {
    const { service, uploads } = scripted;
    service.on(FINISH, loss, used).on(STAT, stored());
    expect(await uploads.finishSession(finishing)).toMatchObject({ contentHash: HASH });
    expect(service.callsOf(FINISH)).toHaveLength(1);
  });

  test('a session commit whose answer was lost succeeds when its repeat finds the session used and the content there', async () => {
    const { service, uploads } = scripted;
    service.on(FINISH, loss, used).on(STAT, notFound, stored());
    expect(await uploads.finishSession(finishing)).toMatchObject({ contentHash: HASH });
  });

  test('a session commit without a hash whose answer was lost is recognized by size and times', async () => {
    const { service, uploads } = scripted;
    const modifiedMs = Date.UTC(2001, 1, 2, 3, 4, 5);
    const { contentHash: _, ...unhashed } = finishing;
    const commit = { ...unhashed, options: { mode: { if: 'any' }, modifiedMs } } as const;
    service.on(FINISH, loss, used).on(STAT, stored({ client_modified: '2001-02-02T03:04:05Z' }));
    expect(await uploads.finishSession(commit)).toMatchObject({ modifiedMs });
    service
      .on(FINISH, loss, used)
      .on(STAT, stored({ server_modified: LONG_AGO, client_modified: '2001-02-02T03:04:05Z' }));
    await expect(uploads.finishSession(commit)).rejects.toMatchObject({ failure: 'session-gone' });
  });

  test('a session commit whose answer was lost fails with session-gone when other content is there', async () => {
    const { service, uploads } = scripted;
    service.on(FINISH, loss, used).on(STAT, stored({ content_hash: 'b'.repeat(64) }));
    await expect(uploads.finishSession(finishing)).rejects.toMatchObject({ failure: 'session-gone' });
  });
});
