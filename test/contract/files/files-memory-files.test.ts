import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryFiles } from '../../support/memory-files.ts';
import { memoryState } from '../../support/memory-state.ts';
import { filesContract } from './files.contract.ts';

filesContract('the drive in memory that tests of the protocol use', async () => {
  const state = memoryState();
  const files = new MemoryFiles({ clock: new ManualClock(), properties: state.properties });
  return { files, state, close: async () => {} };
});
