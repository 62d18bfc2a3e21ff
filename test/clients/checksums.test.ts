import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

// `rclone check --checksum` of files that rclone, other WebDAV clients and other programs at the service have uploaded.

const MIB = 1024 * 1024;

/** Files by their paths; some are longer than a block. */
const FILES: ReadonlyMap<string, Buffer> = new Map([
  ['empty', Buffer.alloc(0)],
  ['short.txt', Buffer.from('text')],
  ['sub folder/#1 & ü.txt', Buffer.from('more text')],
  ['sub folder/block.bin', pseudoRandomBytes(4 * MIB + 1, 3)],
  ['large.bin', pseudoRandomBytes(9 * MIB, 5)],
]);

async function startGateway(service: TestService, ...args: readonly string[]): Promise<Program> {
  const data = await temporaryDirectory();
  const program = await startProgram({
    dataDirectory: data.path,
    args: ['--api-url', service.url, '--token', service.token, ...args],
  });
  onTestFinished(async () => {
    await program.stop();
    await data.remove();
  });
  return program;
}

async function startService(): Promise<TestService> {
  const service = await startTestService();
  onTestFinished(() => service.close());
  return service;
}

/** Makes a folder with `FILES`. */
async function localFolder(): Promise<string> {
  const local = await temporaryDirectory();
  onTestFinished(() => local.remove());
  for (const [name, bytes] of FILES) {
    await mkdir(join(local.path, name, '..'), { recursive: true });
    await writeFile(join(local.path, name), bytes);
  }
  return local.path;
}

test.each([
  ['owncloud', []],
  ['nextcloud', []],
  ['owncloud', ['--write-mode', 'back']],
])(
  'rclone check --checksum with the vendor %s and %j compares all files, also those that other programs uploaded',
  async (vendor, args) => {
    const service = await startService();
    const local = await localFolder();
    for (const [name, bytes] of FILES) await put(service, `/at service/${name}`, bytes);
    const program = await startGateway(service, '--checksums', 'all', ...args);
    const headers = { authorization: program.authorization };
    const send = (method: string, target: string, body?: Buffer) =>
      fetch(new URL(target, program.url), { method, headers, ...(body && { body: new Uint8Array(body) }) });
    for (const folder of ['by%20curl/', 'by%20curl/sub%20folder/']) await send('MKCOL', folder);
    for (const [name, bytes] of FILES) {
      const target = `by%20curl/${name.split('/').map(encodeURIComponent).join('/')}`;
      expect((await send('PUT', target, bytes)).status).toBe(201);
    }
    const rclone = await configureRclone({ ...program, vendor });
    onTestFinished(() => rclone.remove());
    await rclone.run('copy', local, 'drive:by rclone');
    for (const folder of ['at service', 'by curl', 'by rclone']) {
      const { output } = await rclone.run('check', '--checksum', '-v', local, `drive:${folder}`);
      expect(output).toMatch(/5 matching files/);
      expect(output).not.toMatch(/could not be checked/);
    }
    // A file of the same size with other content is found.
    await put(service, '/at service/short.txt', 'TEXT');
    await send('PUT', 'by%20curl/short.txt', Buffer.from('TEXT'));
    const check = (folder: string) => rclone.run('check', '--checksum', local, `drive:${folder}`);
    await expect(check('by curl')).rejects.toThrow(/short\.txt/);
    // The drive learns from its change feed that a file was replaced at the service.
    await eventually(() => expect(check('at service')).rejects.toThrow(/short\.txt/));
  },
);
