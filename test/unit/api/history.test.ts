import { afterEach, beforeEach, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { fileMetadata, ok } from '../../support/scripted-service.ts';

let scripted: Scripted;

beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

test('a revision of a file that another program moved to where no path can name it has its name, in the folder that was asked for', async () => {
  const moved = fileMetadata(`/${'a'.repeat(250)}␗/now.txt`);
  scripted.service.on('files/list_revisions', ok({ is_deleted: true, has_more: false, entries: [moved] }));
  const { files } = await scripted.remote.revisions(at('/d/before.txt'), { limit: 1 });
  expect(files).toMatchObject([{ path: '/d/now.txt', name: 'now.txt' }]);
});
