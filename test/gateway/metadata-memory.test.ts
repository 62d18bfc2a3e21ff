import { request } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { pathOf, ROOT } from '../../src/util/path.ts';
import { startDav } from '../support/dav.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { MemoryDrive } from '../support/memory-drive.ts';
import { usedBytes } from '../support/memory-use.ts';
import { VastRemote } from '../support/vast-remote.ts';

const MIB = 1024 ** 2;

/** Limit of a drive's metadata cache, in bytes; the listings together take many times as much. */
const BUDGET_BYTES = 8 * MIB;

/** Limit of the rendered listings that are kept, in bytes. */
const RENDERED_BYTES = 4 * MIB;

/** Allowance for V8, listings under way and errors of the estimate, in bytes. */
const SLACK_BYTES = 24 * MIB;

/** Number of folders: several times as many as the limit has room for. */
const FOLDERS = Math.min(500, effort(60));
const FILES_EACH = 2000;
/** Number of folders of the PROPFIND: their rows, about 800 bytes each, exceed the limits and the slack together. */
const PROPFIND_FOLDERS = Math.min(60, effort(25));

let remote: VastRemote;
let drive: MemoryDrive;
afterEach(() => drive.close());

/** Opens a drive with `folderCount` folders. */
async function open(folderCount: number): Promise<void> {
  remote = new VastRemote(folderCount, FILES_EACH);
  drive = await MemoryDrive.open(remote, { metadataBytesMax: BUDGET_BYTES });
}

const folder = (index: number) => pathOf([`folder-${index}`]);
const file = (index: number, name: string) => pathOf([`folder-${index}`, name]);

test(`the metadata cache stays within its limit while ${FOLDERS * FILES_EACH} entries are listed, and later answers are correct`, async () => {
  await open(FOLDERS);
  const { files } = drive;
  await files.list(ROOT);
  const before = await usedBytes();
  for (let index = 0; index < remote.folderCount; index++) {
    expect((await files.list(folder(index))).children).toHaveLength(remote.filesEach);
    expect(files.status().metadataBytes).toBeLessThanOrEqual(BUDGET_BYTES);
    if (index % 20 === 19) expect((await usedBytes()) - before).toBeLessThan(BUDGET_BYTES + SLACK_BYTES);
  }
  // The last folder is still cached and costs no call.
  const calls = remote.questions;
  await files.list(folder(remote.folderCount - 1));
  expect(remote.questions).toBe(calls);
  // The first folders were evicted and are listed again.
  const again = await files.list(folder(3));
  expect(again.children.map(({ path }) => path)).toEqual(
    Array.from({ length: remote.filesEach }, (_, index) => remote.file(3, index).path),
  );
  expect(remote.questions).toBeGreaterThan(calls);
  expect(await files.stat(file(7, 'file-77.txt'))).toMatchObject({ rev: '7a77', sizeBytes: 77 });
  expect(await files.stat(file(7, 'file-2000.txt'))).toBeUndefined();
  expect(await files.stat(pathOf([`folder-${FOLDERS}`, 'file-1.txt']))).toBeUndefined();
});

test('a new file appears in a folder that the metadata cache has evicted', async () => {
  await open(60);
  const { files } = drive;
  for (let index = 0; index < 30; index++) await files.list(folder(index));
  expect(await files.stat(file(0, 'new.txt'))).toBeUndefined();
  for (let index = 30; index < 60; index++) await files.list(folder(index));
  remote.putFile(file(0, 'new.txt'), 'new');
  await eventually(async () => expect(await files.stat(file(0, 'new.txt'))).toMatchObject({ sizeBytes: 3 }));
});

test(`PROPFIND of ${PROPFIND_FOLDERS * FILES_EACH} entries with Depth infinity takes less memory than its answer`, async () => {
  await open(PROPFIND_FOLDERS);
  const { files } = drive;
  const dav = await startDav({ wrap: ({ state }) => ({ files, state }), listingBytesMax: RENDERED_BYTES });
  const before = await usedBytes();
  let rows = 0;
  let tail = '';
  let peakBytes = 0;
  let nextSample = 10_000;
  try {
    await new Promise<void>((resolve, reject) => {
      const sent = request(
        dav.url,
        { method: 'PROPFIND', headers: { depth: 'infinity' } },
        async (answer) => {
          for await (const chunk of answer) {
            const text = tail + chunk.toString('latin1');
            rows += text.split('</D:response>').length - 1;
            tail = text.slice(text.lastIndexOf('>') + 1);
            if (rows < nextSample) continue;
            nextSample += 10_000;
            peakBytes = Math.max(peakBytes, (await usedBytes()) - before);
          }
          resolve();
        },
      );
      sent.on('error', reject);
      sent.end();
    });
  } finally {
    await dav.close();
  }
  expect(rows).toBe(1 + remote.folderCount * (1 + remote.filesEach));
  expect(peakBytes).toBeGreaterThan(0);
  expect(peakBytes).toBeLessThan(BUDGET_BYTES + RENDERED_BYTES + SLACK_BYTES);
});
