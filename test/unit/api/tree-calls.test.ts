import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  json,
  notFound,
  ok,
  refuse,
  tagged,
  text,
} from '../../support/scripted-service.ts';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

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
  ])('a copy refused with %s %o fails with the right failure', async (tag, more, failure) => {
    scripted.service
      .on('files/copy_v2', refuse({ '.tag': tag, ...more }, tag))
      .on('files/get_metadata', notFound);
    await expect(scripted.remote.copy(at('/a'), at('/b'))).rejects.toMatchObject({ failure });
  });

  test.each<[string, Answer, string]>([
    [
      'an app without the permission',
      text(400, 'Error in call: Your API app is not allowed to call this function.'),
      'not-allowed',
    ],
    [
      'a token without the scope',
      json(401, {
        error_summary: 'missing_scope/',
        error: { '.tag': 'missing_scope', required_scope: 'files.permanent_delete' },
      }),
      'not-allowed',
    ],
    [
      'an account without the feature',
      json(403, {
        error_summary: 'x/',
        error: { '.tag': 'invalid_account_type', invalid_account_type: { '.tag': 'feature' } },
      }),
      'not-allowed',
    ],
    [
      'an entry without write permission',
      refuse(
        { '.tag': 'path_write', path_write: { '.tag': 'no_write_permission' } },
        'path_write/no_write_permission',
      ),
      'no-permission',
    ],
    ['too many files', refuse({ '.tag': 'too_many_files' }, 'too_many_files'), 'too-many-files'],
  ])('a permanent removal refused for %s fails with the right failure', async (_why, answer, failure) => {
    scripted.service.on('files/permanently_delete', answer);
    await expect(scripted.remote.remove(at('/f'), { permanent: true })).rejects.toMatchObject({ failure });
  });

  test("a removal answered with a proxy's page fails with unavailable", async () => {
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
