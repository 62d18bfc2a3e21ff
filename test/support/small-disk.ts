import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command, succeed } from './command.ts';

/** A file system small enough to be filled. Needs root and the right to mount. */
export interface SmallDisk {
  readonly path: string;
  /** Fills the file system to the last byte. */
  fill(): void;
  /** Removes the files of `fill`. */
  makeRoom(): void;
  freeBytes(): number;
  unmount(): Promise<void>;
}

const PIECE = Buffer.alloc(64 * 1024);

export async function mountSmallDisk(mebibytes: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), 'davgate-disk-'));
  const { code, output } = await command('mount', [
    ...['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0700`],
    ...['davgate-test', path],
  ]);
  if (code !== 0) {
    await rmdir(path);
    throw new Error(`cannot mount a tmpfs: ${output.trim()}; run this test as root, with the right to mount`);
  }
  const filling = join(path, 'filling');
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  };
  return {
    path,
    freeBytes,
    fill() {
      while (append(filling, PIECE));
      if (freeBytes() > 0) throw new Error(`${path} could not be filled: ${freeBytes()} bytes are left`);
    },
    makeRoom: () => rmSync(filling, { force: true }),
    async unmount() {
      await succeed('umount', [path]);
      await rmdir(path);
    },
  };
}

/** Appends as many of the bytes as fit. Returns whether all did. */
function append(file: string, bytes: Buffer): boolean {
  try {
    writeFileSync(file, bytes, { flag: 'a' });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false;
    throw error;
  }
}
