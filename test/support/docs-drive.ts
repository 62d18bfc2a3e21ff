import { MemoryDrive } from './memory-drive.ts';
import { at, MemoryRemote } from './memory-remote.ts';

/** A drive with the files `/Docs/a.txt` and `/Docs/b.txt`, of which nothing is known yet. */
export async function openDocs(): Promise<MemoryDrive> {
  const remote = new MemoryRemote();
  // The feed tells one thing at a time: in between is where mistakes would show.
  remote.pageEntries = 1;
  remote.putFile(at('/Docs/a.txt'), 'a');
  remote.putFile(at('/Docs/b.txt'), 'b');
  return MemoryDrive.open(remote);
}
