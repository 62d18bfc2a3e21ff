import { afterEach, beforeEach, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { type Answer, json, lose, notFound, ok, refuse, text } from '../../support/scripted-service.ts';
import { BODY, STAT, stored } from '../../support/uploaded-file.ts';

// After a lost answer and a refusal, only a look at the service tells whether the call was carried out, and that fails.

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

const limited = text(429, 'slow down', { 'retry-after': '300' });
const fromGone = refuse(
  { '.tag': 'from_lookup', from_lookup: { '.tag': 'not_found' } },
  'from_lookup/not_found',
);
const taken = (union: string, kind: string): Answer =>
  refuse({ '.tag': union, [union]: { '.tag': 'conflict', conflict: { '.tag': kind } } }, `${union}/conflict`);
const uploadTaken = refuse(
  { '.tag': 'path', reason: { '.tag': 'conflict', conflict: { '.tag': 'file' } }, upload_session_id: 's' },
  'path/conflict/file',
);

test.each<[string, string, Answer, readonly Answer[], (opened: Scripted) => Promise<unknown>]>([
  [
    'a move',
    'files/move_v2',
    fromGone,
    [notFound],
    ({ remote }) => remote.move(at('/from'), at('/to'), undefined, 'id:1'),
  ],
  [
    'a copy',
    'files/copy_v2',
    taken('to', 'file'),
    // Both ends are looked at.
    [notFound, notFound],
    ({ remote }) => remote.copy(at('/from'), at('/to')),
  ],
  [
    'a new folder',
    'files/create_folder_v2',
    taken('path', 'folder'),
    [notFound],
    ({ remote }) => remote.createFolder(at('/d')),
  ],
  [
    'an upload',
    'files/upload',
    uploadTaken,
    [notFound],
    ({ uploads }) => uploads.upload(at('/f'), BODY, { mode: { if: 'absent' } }),
  ],
])(
  '%s whose answer was lost, whose repeat was refused and which cannot be looked up is not reported as refused',
  async (_, route, refusal, firstLook, call) => {
    scripted.service.on(route, lose, refusal).on(STAT, ...firstLook, limited);
    await expect(call(scripted)).rejects.toMatchObject({
      failure: 'rate-limited',
      details: { isUndone: false, retryAfterMs: 300_000 },
    });
    expect(scripted.service.callsOf(route)).toHaveLength(2);
  },
);

test('a call whose answer was lost is not reported as undone when davgate makes no more calls', async () => {
  await scripted.close();
  scripted = await openScripted({ namespace: '12' });
  const { service, remote, clock } = scripted;
  service.on('files/restore', text(500, '', { 'retry-after': '3' }));
  service.on(STAT, json(422, { error_summary: 'invalid_root/..', error: { '.tag': 'invalid_root' } }));
  const restored = expect(remote.restore(at('/f'), '0123456789abc')).rejects.toMatchObject({
    failure: 'wrong-namespace',
    details: { isUndone: false },
  });
  await clock.untilSleeping();
  await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'wrong-namespace' });
  await clock.advance(3_250);
  await restored;
  expect(service.callsOf('files/restore')).toHaveLength(1);
});

test('a deletion that met contention after a lost answer looks at the path before its third call, and does not remove a new file', async () => {
  const contention = json(429, {
    error_summary: 'too_many_write_operations/',
    error: { reason: { '.tag': 'too_many_write_operations' }, retry_after: 1 },
  });
  const { service, remote, uploads, clock } = scripted;
  // An upload of ours is under way all the time, so that the deletions seem to collide with it.
  service.on('files/upload', () => {});
  const abort = new AbortController();
  const upload = uploads.upload(at('/other'), BODY, { mode: { if: 'any' } }, abort.signal);
  const ended = expect(upload).rejects.toThrow('over');
  await service.until(() => service.callsOf('files/upload').length === 1);
  service.on('files/delete_v2', lose, contention, ok({ metadata: { '.tag': 'file', name: 'f' } }));
  service.on(STAT, stored({ id: 'id:old' }), stored({ id: 'id:new' }));
  await clock.during(remote.remove(at('/f'), { permanent: false, id: 'id:old' }));
  expect(service.callsOf('files/delete_v2')).toHaveLength(2);
  abort.abort(new Error('over'));
  await ended;
});
