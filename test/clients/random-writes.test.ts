import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { clientFolder } from '../support/client-folder.ts';
import { IS_LONG, testSeed } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';

// After the program fsx, which finds mistakes of file systems: the same random calls go to a file on the drive and to a local
// one, and every read must give the same bytes.

const OPERATIONS = IS_LONG ? 10_000 : 1_000;

/** Largest size of the file, in bytes: three blocks of the service. */
const SIZE_MAX = 12 * 2 ** 20;

/** Largest read or write, in bytes. */
const PIECE_MAX = 100_000;

/** Operations before the file is closed, which sends it to the drive. */
const OPEN_FOR = 100;

/** Returns pseudo-random integers below a limit. */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Does one random operation on both files; compares what they return. */
async function operate(files: readonly [FileHandle, FileHandle], random: (limit: number) => number) {
  const kind = random(10);
  const at = random(SIZE_MAX - PIECE_MAX);
  const length = 1 + random(PIECE_MAX);
  if (kind < 5) {
    const [drive, local] = await Promise.all(
      files.map((file) => file.read(Buffer.alloc(length), 0, length, at)),
    );
    expect(drive?.bytesRead).toBe(local?.bytesRead);
    expect(local && drive?.buffer.equals(local.buffer)).toBe(true);
  } else if (kind < 9) {
    const bytes = pseudoRandomBytes(length, random(1_000_000));
    for (const file of files) await file.write(bytes, 0, length, at);
  } else for (const file of files) await file.truncate(at);
}

test(`${OPERATIONS} random reads, writes and truncations in an rclone mount of the drive give the bytes that a local file has`, async () => {
  const seed = testSeed();
  const random = numbers(seed);
  const [folder, local] = await Promise.all([clientFolder('random-writes'), temporaryDirectory()]);
  const rclone = await configureRclone(folder);
  const mount = await rclone.mount('--vfs-cache-mode', 'writes', '--vfs-write-back', '0s');
  const paths = [join(mount.path, 'file'), join(local.path, 'file')] as const;
  try {
    for (const path of paths) await writeFile(path, '');
    for (let done = 0; done < OPERATIONS; ) {
      const files = [await open(paths[0], 'r+'), await open(paths[1], 'r+')] as const;
      for (const end = done + OPEN_FOR; done < end; done++)
        await operate(files, random).catch((cause: unknown) => {
          throw new Error(`operation ${done} with TEST_SEED=${seed}`, { cause });
        });
      for (const file of files) await file.close();
    }
    const file = await open(paths[1], 'r');
    const wanted = await file.readFile();
    await file.close();
    await eventually(async () =>
      expect((await folder.read('file'))?.equals(wanted), `seed ${seed}`).toBe(true),
    );
  } finally {
    await mount.unmount();
    await Promise.all([rclone.remove(), local.remove()]);
  }
});
