import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Disk, localDisk } from '../../../src/service/storage/blocks/disk.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { eventually, expectSoon } from '../../support/eventually.ts';
import { body, bytesOf, commit, HOME, opened, put, refusal, temporaryFolder } from './opened.ts';

const STEPS = ['create', 'append', 'sync', 'rename', 'syncFolder'] as const;
type Step = (typeof STEPS)[number];

/** Returns a disk on which `step` fails with `code` while `fails` is set. */
function failingDisk(step: Step, code: string): Disk & { fails: boolean } {
  const check = (now: Step) => {
    if (disk.fails && now === step) throw Object.assign(new Error(`${code}: injected`), { code });
  };
  const disk = {
    ...localDisk,
    fails: false,
    create: async (path: string) => {
      check('create');
      const file = await localDisk.create(path);
      return {
        append: async (chunks: readonly Uint8Array[]) => {
          check('append');
          await file.append(chunks);
        },
        sync: async () => {
          check('sync');
          await file.sync();
        },
        close: () => file.close(),
      };
    },
    rename: async (from: string, to: string) => {
      check('rename');
      await localDisk.rename(from, to);
    },
    syncFolder: async (path: string) => {
      check('syncFolder');
      await localDisk.syncFolder(path);
    },
  };
  return disk;
}

test.each(
  STEPS.flatMap((step) => [
    [step, 'ENOSPC', 'write/insufficient_space'] as const,
    [step, 'EIO', 'EIO: injected'] as const,
  ]),
)(
  'a write whose %s fails with %s is refused and leaves no file, and later writes succeed',
  async (step, code, outcome) => {
    const disk = failingDisk(step, code);
    const storage = await opened({ disk });
    const kept = randomBytes(100_000);
    await put(storage, '/kept', kept);
    // Three blocks, so that several are being written when one fails.
    const bytes = randomBytes(9_000_000);
    const session = await storage.startSession(HOME, 'sequential', body(kept), false);
    disk.fails = true;
    const failures = [
      put(storage, '/new/a', bytes),
      put(storage, '/kept', bytes),
      storage.appendSession(HOME, { session, offset: kept.length }, body(bytes), false),
    ];
    expect(await Promise.all(failures.map(refusal))).toEqual([outcome, outcome, outcome]);
    expect(await refusal(() => storage.stat(HOME, '/new', false))).toBe('lookup/not_found');
    expect(await put(storage, '/small', 'small files need no block file')).toMatchObject({ name: 'small' });
    expect(await readdir(join(storage.dataDirectory, 'incoming'))).toEqual([]);
    expect(await readdir(join(storage.dataDirectory, 'blocks'))).toHaveLength(1);
    disk.fails = false;
    expect((await put(storage, '/new/a', bytes)).contentHash).toBe(contentHashOf(bytes));
    expect(
      (await storage.finishSession(HOME, { session, offset: kept.length }, commit('/b'), body())).sizeBytes,
    ).toBe(kept.length);
  },
);

/** Mounts a file system of 32 MiB until the end of the test. */
async function smallDisk(): Promise<string> {
  const folder = await temporaryFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', folder], { stdio: 'pipe' });
  } catch (failure) {
    throw new Error(`this test needs root and the right to mount a tmpfs: ${failure}`);
  }
  onTestFinished(() => {
    execFileSync('umount', ['-l', folder]);
  });
  return folder;
}

/** Uploads files of `sizeBytes` until the disk is full. Returns their bytes by path. */
async function fill(storage: Storage, folder: string, sizeBytes: number): Promise<Map<string, Buffer>> {
  const written = new Map<string, Buffer>();
  for (let index = 0; ; index++) {
    const bytes = randomBytes(sizeBytes);
    const outcome = await refusal(put(storage, `${folder}/${index}`, bytes));
    if (outcome === 'write/insufficient_space') return written;
    expect(outcome).toBe('done');
    written.set(`${folder}/${index}`, bytes);
  }
}

async function expectAll(storage: Storage, written: Map<string, Buffer>): Promise<void> {
  for (const [path, bytes] of written) {
    const file = await storage.stat(HOME, path, false);
    expect(file.kind === 'file' && (await bytesOf(storage.read(HOME, file, undefined))).equals(bytes)).toBe(
      true,
    );
  }
}

test('a full disk refuses writes with insufficient_space, keeps every stored file whole, and accepts writes after a removal', async () => {
  const dataDirectory = join(await smallDisk(), 'data');
  const first = await opened({ dataDirectory });
  const large = await fill(first, '/large', 3_000_000);
  const small = await fill(first, '/small', 20_000);
  expect([large.size, small.size].every((count) => count > 3)).toBe(true);
  const tiny = await fill(first, '/tiny', 10);
  await expectAll(first, new Map([...large, ...small, ...tiny]));
  await first.close();
  const storage = await opened({ dataDirectory });
  await expectAll(storage, new Map([...large, ...small, ...tiny]));
  expect(await refusal(storage.removeForever(HOME, '/large'))).toBe('done');
  await eventually(async () => expect(await readdir(join(dataDirectory, 'blocks'))).toEqual([]));
  expect(await refusal(put(storage, '/again', randomBytes(3_000_000)))).toBe('done');
  await storage.close();
  const again = await opened({ dataDirectory });
  await expectAll(again, new Map([...small, ...tiny]));
  expect(await refusal(() => again.stat(HOME, '/large', true))).toBe('lookup/not_found');
});

test.each([0, 1_000_000])(
  'a reserve of %d bytes, as a kill leaves it, is filled by the next start, and a removal succeeds when the disk is full',
  async (sizeBytes) => {
    const dataDirectory = join(await smallDisk(), 'data');
    await mkdir(dataDirectory);
    const reserve = join(dataDirectory, 'reserve');
    await writeFile(reserve, randomBytes(sizeBytes));
    const storage = await opened({ dataDirectory });
    await expectSoon(async () => (await stat(reserve)).size).toBe(4 * 1024 * 1024);
    for (const fileBytes of [3_000_000, 20_000, 10]) await fill(storage, `/${fileBytes}`, fileBytes);
    expect(await refusal(storage.removeForever(HOME, '/3000000'))).toBe('done');
    await eventually(async () => expect(await readdir(join(dataDirectory, 'blocks'))).toEqual([]));
    expect(await refusal(put(storage, '/again', randomBytes(3_000_000)))).toBe('done');
  },
);
