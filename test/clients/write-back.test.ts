import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { expectSoon } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { mountSmallDisk } from '../support/small-disk.ts';

const MIB = 1024 * 1024;

async function startService(): Promise<TestService> {
  const service = await startTestService();
  onTestFinished(() => service.close());
  return service;
}

async function startGateway(service: TestService, dataDirectory: string): Promise<Program> {
  const program = await startProgram({
    dataDirectory,
    args: ['--write-mode', 'back', '--api-url', service.url, '--token', service.token],
  });
  onTestFinished(async () => {
    await program.stop();
  });
  return program;
}

async function pendingFiles(program: Program): Promise<number> {
  const health = (await (await fetch(`${program.url}.davgate/healthz`)).json()) as { journalFiles: number };
  return health.journalFiles;
}

test('rclone check finds its copy on a drive with write-back right before and after the writes are sent', async () => {
  const service = await startService();
  const [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  onTestFinished(async () => {
    await Promise.all([data.remove(), local.remove()]);
  });
  const program = await startGateway(service, data.path);
  const rclone = await configureRclone(program);
  onTestFinished(() => rclone.remove());
  const source = join(local.path, 'source');
  await mkdir(join(source, 'sub folder'), { recursive: true });
  for (const size of [0, 1, 64 * 1024, 64 * 1024 + 1, 4 * MIB + 1, 9 * MIB])
    await writeFile(join(source, `${size} bytes`), pseudoRandomBytes(size, size % 97));
  for (let index = 0; index < 60; index++)
    await writeFile(join(source, 'sub folder', `#${index} % & ü.txt`), `content of ${index}`);
  // So slow that writes are still pending when rclone has ended.
  service.service.setFaults({ 'latency-write-ms': 10_000 });
  await rclone.run('copy', source, 'drive:copied');
  expect(await pendingFiles(program)).toBeGreaterThan(0);
  await rclone.run('check', '--download', source, 'drive:copied');
  service.service.setFaults({});
  await expectSoon(() => pendingFiles(program)).toBe(0);
  await rclone.run('check', '--download', source, 'drive:copied');
  const { output } = await rclone.run('copy', source, 'drive:copied', '-v', '--stats-one-line');
  expect(output).not.toMatch(/Copied/);
});

test('PUT on a full disk with write-back answers 507, the acknowledged writes are sent, and then PUT succeeds again', async () => {
  const service = await startService();
  // davgate keeps 16 MiB free.
  const disk = await mountSmallDisk(40);
  onTestFinished(() => disk.unmount());
  const program = await startGateway(service, join(disk.path, 'data'));
  const { authorization } = program;
  const content = (index: number) => pseudoRandomBytes(index % 2 === 0 ? 30_000 : MIB, index);
  const put = async (index: number) => {
    const url = `${program.url}file%20${index}`;
    const body = new Uint8Array(content(index));
    return (await fetch(url, { method: 'PUT', headers: { authorization }, body })).status;
  };
  service.service.setFaults({ 'error-write-share': 1 });
  let accepted = 0;
  let status = await put(accepted);
  for (; status === 201; status = await put(accepted)) accepted++;
  expect(status).toBe(507);
  expect(accepted).toBeGreaterThan(10);
  service.service.setFaults({});
  await expectSoon(() => pendingFiles(program)).toBe(0);
  // Before the reads, because their block cache fills the same disk.
  expect(await put(accepted)).toBe(201);
  for (let index = 0; index <= accepted; index++) {
    const answer = await fetch(`${program.url}file%20${index}`, { headers: { authorization } });
    expect(Buffer.from(await answer.arrayBuffer()).equals(content(index)), `file ${index}`).toBe(true);
  }
});
