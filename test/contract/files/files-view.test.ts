import { createDriveView } from '../../../src/drive/view/drive-view.ts';
import { MemoryDrive } from '../../support/memory-drive.ts';
import { path } from '../../support/paths.ts';
import { filesContract } from './files.contract.ts';

filesContract('a folder of the tree over a service in memory, as its user sees it', async () => {
  const memory = await MemoryDrive.open();
  const drive = {
    files: memory.files,
    history: memory.files.history,
    changes: memory.files.changes,
    state: memory.state,
  };
  const { files, state } = createDriveView([
    { at: path('/'), drive, root: path('/People/Ann'), isReadOnly: false },
  ]);
  return { files, state, close: () => memory.close() };
});
