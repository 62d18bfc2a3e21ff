import { MemoryDrive } from '../../support/memory-drive.ts';
import { filesContract } from './files.contract.ts';

filesContract('the tree over a service in memory', async () => {
  const drive = await MemoryDrive.open();
  return { files: drive.files, state: drive.state, close: () => drive.close() };
});

filesContract('the journal over the tree over a service in memory', async () => {
  const drive = await MemoryDrive.open(undefined, { writeBack: true });
  return { files: drive.files, state: drive.files.state, close: () => drive.close() };
});
