import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BlockThread } from '../../../../src/drive/content/block-thread.ts';
import { programUrl } from '../../../../src/util/package.ts';
import { builtUrl } from '../../../support/build.ts';
import { command } from '../../../support/command.ts';
import { temporaryDirectory } from '../../../support/program.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const block = () => ({
  name: 'name-4',
  path: join(directory.path, 'na', 'name-4'),
  incoming: join(directory.path, 'incoming'),
  bytes: Buffer.from('text'),
});

test('a block is written with its folders, and leaves no other file', async () => {
  const thread = new BlockThread();
  const fileBytes = await thread.write(block());
  await thread.close();
  expect((await stat(block().path)).size).toBe(fileBytes);
  const entries = await readdir(directory.path, { recursive: true, withFileTypes: true });
  expect(entries.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual(['name-4']);
});

test('each block that a broken thread was given fails with the reason, also after the thread was started again', async () => {
  const thread = new BlockThread(new URL('data:text/javascript,throw new Error("out of luck")'));
  await expect(Promise.allSettled([thread.write(block()), thread.write(block())])).resolves.toMatchObject([
    { status: 'rejected', reason: { message: 'out of luck' } },
    { status: 'rejected', reason: { message: 'out of luck' } },
  ]);
  await expect(thread.write(block())).rejects.toThrow('out of luck');
});

test('a block whose thread cannot be started fails with the reason', async () => {
  // Node refuses the address at once, as it refuses to start a thread without memory for it.
  const thread = new BlockThread(new URL('http://192.0.2.1/thread.js'));
  const written = thread.write(block());
  await expect(written).rejects.toThrow('must be of scheme file');
});

test('a process with nothing else to do ends when its block is written, not before and not later', async () => {
  const script = `
    import { BlockThread } from ${JSON.stringify(builtUrl('drive/content/block-thread.ts'))};
    const thread = new BlockThread(new URL(${JSON.stringify(programUrl('drive/content/block-file-thread.js').href)}));
    const block = ${JSON.stringify({ ...block(), bytes: undefined })};
    await thread.write({ ...block, bytes: Buffer.from('text') });
    console.log('written');`;
  const file = join(directory.path, 'write.mjs');
  await writeFile(file, script);
  const { code, output } = await command(process.execPath, [file]);
  expect({ code, output }).toEqual({ code: 0, output: 'written\n' });
});
