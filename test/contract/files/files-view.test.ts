import { expect, onTestFinished, test } from 'vitest';
import { createDriveView } from '../../../src/drive/view/drive-view.ts';
import { MemoryDrive } from '../../support/memory-drive.ts';
import { path } from '../../support/paths.ts';
import { filesContract } from './files.contract.ts';

async function openView() {
  const memory = await MemoryDrive.open();
  const drive = {
    files: memory.files,
    history: memory.files.history,
    changes: memory.files.changes,
    state: memory.state,
    catchUp: undefined,
  };
  const { files, state } = createDriveView([
    { at: path('/'), drive, root: path('/People/Ann'), isReadOnly: false },
  ]);
  return { memory, files, state, close: () => memory.close() };
}

filesContract('a folder of the tree over a service in memory, as its user sees it', openView);

test('a user of a folder gets a file from memory under its own path, and never one beside the folder', async () => {
  const { memory, files, close } = await openView();
  onTestFinished(close);
  await memory.put(path('/f'), 'of the drive');
  expect(files.known(path('/f'))).toBeUndefined();
  await files.stat(path('/'));
  await memory.put(path('/People/Ann/f'), 'of Ann');
  const file = await files.stat(path('/f'));
  if (file?.kind !== 'file') throw new Error('no file at /f');
  expect(files.known(path('/f'))).toBe(file);
  expect(file.path).toBe('/f');
  for await (const _piece of files.read(file, undefined, new AbortController().signal));
  expect(Buffer.from(files.inMemory(file) ?? []).toString()).toBe('of Ann');
});
