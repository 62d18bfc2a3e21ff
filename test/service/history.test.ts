import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileShape, TIME } from '../support/metadata-shapes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, refusal, refusalIn, rpc } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, name, argument);

describe('files/list_revisions and files/restore', () => {
  test('list_revisions answers the newest first and the deletion, and restore brings the old content back', async () => {
    const first = await put(service, '/History', 'text');
    const second = await put(service, '/History', 'more text');
    const live = await call('files/list_revisions', { path: '/history' });
    expect(live.json).toEqual({ is_deleted: false, entries: [second, first], has_more: false });
    await call('files/delete_v2', { path: '/history' });
    const gone = await call('files/list_revisions', { path: '/history', limit: 1 });
    expect(gone.json).toEqual({
      is_deleted: true,
      server_deleted: TIME,
      entries: [second],
      has_more: true,
    });
    const restored = await call('files/restore', { path: '/History', rev: first['rev'] });
    expect(restored.json).toEqual({
      ...fileShape('/History', 'History'),
      rev: expect.not.stringMatching(String(first['rev'])),
    });
    expect((await download(service, '/History')).text).toBe('text');
  });

  test('list_revisions and restore answer their errors', async () => {
    const { rev } = await put(service, '/errors/file', 'text');
    expect(refusalIn(await call('files/list_revisions', { path: '/errors' }))).toEqual(
      refusal(409, 'path/not_file', { '.tag': 'path', path: { '.tag': 'not_file' } }),
    );
    expect(refusalIn(await call('files/list_revisions', { path: '/never' }))).toEqual(
      refusal(409, 'path/not_found', { '.tag': 'path', path: { '.tag': 'not_found' } }),
    );
    const before = { path: '/errors/file', before_rev: '0123456789abcdef' };
    expect(refusalIn(await call('files/list_revisions', before))).toEqual(
      refusal(409, 'invalid_before_rev', { '.tag': 'invalid_before_rev' }),
    );
    const wrong = { path: '/errors/file', rev: '0123456789abcdef' };
    expect(refusalIn(await call('files/restore', wrong))).toEqual(
      refusal(409, 'invalid_revision', { '.tag': 'invalid_revision' }),
    );
    const malformed = { path: '/errors/file/', rev };
    expect(refusalIn(await call('files/restore', malformed))).toMatchObject({ status: 409 });
  });
});
