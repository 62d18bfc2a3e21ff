import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { partsOf } from '../../../src/api/long-names.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  folderMetadata,
  LOSSES,
  notFound,
  ok,
  refuse,
  tagged,
} from '../../support/scripted-service.ts';
import { afterTheCall, HASH, LONG_AGO, STAT, stored } from '../../support/uploaded-file.ts';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

describe.each(LOSSES)('a new folder whose answer is lost: %s', (_what, loss) => {
  const CREATE = 'files/create_folder_v2';
  const folder = ok(tagged('folder', folderMetadata('/d')));
  const there = refuse(
    { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'folder' } } },
    'path/conflict/folder',
  );

  test('createFolder whose answer was lost returns the folder that it made', async () => {
    scripted.service.on(CREATE, loss, there).on(STAT, folder);
    expect(await scripted.remote.createFolder(at('/d'))).toMatchObject({ kind: 'folder', path: '/d' });
  });

  test('createFolder whose answer was lost returns the folder when it appears only at the second look', async () => {
    scripted.service.on(CREATE, loss, there).on(STAT, notFound, folder);
    expect(await scripted.remote.createFolder(at('/d'))).toMatchObject({ kind: 'folder' });
  });

  test('createFolder whose answer was lost fails with conflict-folder when the folder there differs in letter case', async () => {
    scripted.service.on(CREATE, loss, there).on(STAT, folder);
    await expect(scripted.remote.createFolder(at('/D'))).rejects.toMatchObject({
      failure: 'conflict-folder',
    });
  });

  test('createFolder whose answer was lost returns a folder with a long name whose first part is older and differs in letter case', async () => {
    const [part = '', last = ''] = partsOf('a'.repeat(300));
    const made = ok(tagged('folder', folderMetadata(`/${part.toUpperCase()}/${last}`)));
    scripted.service.on(CREATE, loss, there).on(STAT, made);
    expect(await scripted.remote.createFolder(at(`/${'a'.repeat(300)}`))).toMatchObject({
      name: `${'A'.repeat(250)}${'a'.repeat(50)}`,
    });
  });

  test('createFolder whose answer was lost fails with conflict-file when a file is there', async () => {
    const file = refuse(
      { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'file' } } },
      'path/conflict/file',
    );
    scripted.service.on(CREATE, loss, file).on(STAT, stored());
    await expect(scripted.remote.createFolder(at('/f'))).rejects.toMatchObject({ failure: 'conflict-file' });
  });
});

test('createFolder fails with conflict-folder when the service refuses it at once', async () => {
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

  test('remove whose answer was lost succeeds when the entry is gone', async () => {
    scripted.service.on(DELETE, loss, gone).on(STAT, notFound);
    await scripted.remote.remove(at('/f'), { permanent: false });
    expect(scripted.service.callsOf(DELETE)).toHaveLength(1);
  });

  test('remove whose answer was lost succeeds when the entry goes only after the first look', async () => {
    scripted.service.on(DELETE, loss, gone).on(STAT, stored());
    await scripted.remote.remove(at('/f'), { permanent: false });
    expect(scripted.service.callsOf(DELETE)).toHaveLength(2);
  });

  test('remove whose answer was lost does not remove a new entry with another id at the path', async () => {
    scripted.service
      .on(DELETE, loss, ok({ metadata: tagged('file', fileMetadata('/f')) }))
      .on(STAT, stored({ id: 'id:new' }));
    await scripted.remote.remove(at('/f'), { permanent: false, id: 'id:meant' });
    expect(scripted.service.callsOf(DELETE)).toHaveLength(1);
  });

  test('a permanent remove whose answer was lost is sent again, because the entry may be only in the trash', async () => {
    scripted.service.on('files/permanently_delete', loss, ok(null)).on(STAT, notFound);
    await scripted.remote.remove(at('/f'), { permanent: true });
    expect(scripted.service.callsOf('files/permanently_delete')).toHaveLength(2);
  });

  test('a permanent remove whose answer was lost succeeds when the repeated call finds nothing', async () => {
    scripted.service.on('files/permanently_delete', loss, gone).on(STAT, notFound);
    await scripted.remote.remove(at('/f'), { permanent: true });
    expect(scripted.service.callsOf('files/permanently_delete')).toHaveLength(2);
  });
});

test('remove of a missing path fails with not-found when the service refuses it at once', async () => {
  scripted.service
    .on(
      'files/delete_v2',
      refuse({ '.tag': 'path_lookup', path_lookup: { '.tag': 'not_found' } }, 'path_lookup/not_found'),
    )
    .on(STAT, notFound);
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

  test('move whose answer was lost succeeds when the target has the same id', async () => {
    const { service, remote } = scripted;
    service.on(MOVE, loss, fromGone).on(STAT, target('id:1'));
    expect(await remote.move(at('/from'), at('/to'), undefined, 'id:1')).toMatchObject({ path: '/to' });
    expect(service.routes).toEqual([MOVE, STAT]);
  });

  test('move without an id fetches it before it looks for the result of a lost answer', async () => {
    const { service, remote } = scripted;
    service
      .on(MOVE, loss, fromGone)
      .on(STAT, ok(tagged('folder', folderMetadata('/from', { id: 'id:1' }))), target('id:1'));
    expect(await remote.move(at('/from'), at('/to'))).toMatchObject({ id: 'id:1', path: '/to' });
  });

  test('move whose answer was lost succeeds when the target appears only at the second look', async () => {
    const { service, remote } = scripted;
    service.on(MOVE, loss, fromGone).on(STAT, notFound, target('id:1'));
    expect(await remote.move(at('/from'), at('/to'), undefined, 'id:1')).toMatchObject({ path: '/to' });
  });

  test('move whose answer was lost fails with conflict-folder when the target has another id', async () => {
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
      fileMetadata('/to', { id: 'id:copy', content_hash: HASH, server_modified: afterTheCall(), ...more }),
    );

  test('copy whose answer was lost returns a new file with the same content', async () => {
    scripted.service.on(COPY, loss, taken).on(STAT, stats({ '/from': source, '/to': made() }));
    expect(await copy()).toMatchObject({ id: 'id:copy' });
  });

  test.each([
    ['other content', { content_hash: 'b'.repeat(64) }],
    ['the same content, but from long before', { server_modified: LONG_AGO }],
  ])('copy whose answer was lost fails with conflict-file when the target has %s', async (_there, more) => {
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

  test('copy whose answer was lost returns a folder with the same entries', async () => {
    scripted.service
      .on(COPY, loss, taken)
      .on(STAT, folders)
      .on('files/list_folder', listing({ '/from': HASH, '/to': HASH }));
    expect(await copy()).toMatchObject({ kind: 'folder', id: 'id:2' });
  });

  test('copy whose answer was lost fails with conflict-file when the folder there has other content', async () => {
    scripted.service
      .on(COPY, loss, taken)
      .on(STAT, folders)
      .on('files/list_folder', listing({ '/from': HASH, '/to': 'b'.repeat(64) }));
    await expect(copy()).rejects.toMatchObject({ failure: 'conflict-file' });
  });
});
