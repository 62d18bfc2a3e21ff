import { MemoryDrive } from './memory-drive.ts';
import { at, MemoryRemote } from './memory-remote.ts';

/** Opens a drive with the files `/Docs/a.txt` and `/Docs/b.txt` and an empty cache. */
export async function openDocs(): Promise<MemoryDrive> {
  const remote = new MemoryRemote();
  // One change a page, so that tests see the states between changes.
  remote.pageEntries = 1;
  remote.putFile(at('/Docs/a.txt'), 'a');
  remote.putFile(at('/Docs/b.txt'), 'b');
  return MemoryDrive.open(remote);
}
