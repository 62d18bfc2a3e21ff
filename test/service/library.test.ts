import { existsSync, readdirSync, readlinkSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startService } from '../../src/service/library.ts';
import type { EmbeddedService, StartOptions } from '../../src/service/library-types.ts';
import { temporaryDirectory } from '../support/program.ts';

const closed: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closed.splice(0).reverse()) await close();
});

async function started(options: StartOptions = {}): Promise<EmbeddedService> {
  const service = await startService(options);
  closed.push(() => service.close());
  return service;
}

async function emptyDirectory(): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  closed.push(remove);
  return path;
}

function upload({ contentUrl, token }: EmbeddedService, path: string, text: string): Promise<Response> {
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/octet-stream',
    'dropbox-api-arg': JSON.stringify({ path }),
  };
  return fetch(`${contentUrl}/2/files/upload`, { method: 'POST', headers, body: text });
}

async function names({ url, token }: EmbeddedService): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ path: '' });
  const answer = await fetch(`${url}/2/files/list_folder`, { method: 'POST', headers, body });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { entries: { name: string }[] }).entries.map(({ name }) => name);
}

/** Returns the directories of services in `folder` with files that this process has open: other tests have their own. */
function directoriesInUse(folder: string): string[] {
  const start = join(folder, 'davgate-service-');
  const files = readdirSync('/proc/self/fd').map(openFile);
  const own = files.filter((file) => file.startsWith(start));
  return [...new Set(own.map((file) => file.slice(0, file.indexOf('/', start.length))))];
}

function openFile(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // The one that listed the folder is closed by now.
    return '';
  }
}

test('startService answers calls at url with its token, and reset removes the files and keeps address, token and app', async () => {
  const service = await started();
  const { url, token, appKey, appSecret } = service;
  expect((await upload(service, '/a.txt', 'text')).status).toBe(200);
  expect(await names(service)).toEqual(['a.txt']);
  await service.reset();
  expect(await names(service)).toEqual([]);
  expect(service).toMatchObject({ url, token, appKey, appSecret });
  expect((await upload(service, '/b.txt', 'text')).status).toBe(200);
  expect(await names(service)).toEqual(['b.txt']);
});

test('setFaults of startService makes calls fail, and reset returns to the faults of the start', async () => {
  const service = await started();
  service.setFaults({ 'error-write-share': 1 });
  expect((await upload(service, '/a.txt', 'text')).status).toBeGreaterThanOrEqual(500);
  await service.reset();
  expect((await upload(service, '/a.txt', 'text')).status).toBe(200);
  const failing = await started({ faults: { 'error-write-share': 1 } });
  failing.setFaults({});
  expect((await upload(failing, '/a.txt', 'text')).status).toBe(200);
  await failing.reset();
  expect((await upload(failing, '/a.txt', 'text')).status).toBeGreaterThanOrEqual(500);
});

test('setFaults of startService throws for an unknown fault and names the page that lists them', async () => {
  const service = await started();
  // The cast: a program in JavaScript can pass any name.
  const unknown = { 'eror-write-share': 1 } as object;
  expect(() => service.setFaults(unknown)).toThrow(/^eror-write-share: no such fault/);
});

test('the refresh token and the app of startService get a new access token', async () => {
  const { url, refreshToken, appKey, appSecret } = await started();
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const answer = await fetch(`${url}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ ...form, client_id: appKey, client_secret: appSecret }),
  });
  expect(await answer.json()).toMatchObject({ access_token: expect.any(String) });
});

test('with contentPort, contentUrl is an address of its own, and the base address refuses uploads', async () => {
  const service = await started({ contentPort: 0 });
  expect(service.contentUrl).not.toBe(service.url);
  expect((await upload(service, '/a.txt', 'text')).status).toBe(200);
  expect((await upload({ ...service, contentUrl: service.url }, '/b.txt', 'text')).status).toBe(400);
  await service.reset();
  expect((await upload(service, '/a.txt', 'text')).status).toBe(200);
});

test('a directory keeps the files of startService for the next start, which refuses reset and keeps them', async () => {
  const directory = await emptyDirectory();
  const first = await startService({ directory });
  expect((await upload(first, '/kept.txt', 'text')).status).toBe(200);
  await first.close();
  const second = await started({ directory });
  expect(second.token).toBe(first.token);
  await expect(second.reset()).rejects.toThrow(/had files at the start/);
  expect(await names(second)).toEqual(['kept.txt']);
});

test('close of startService removes its temporary directory', async () => {
  const service = await startService();
  const [made = ''] = directoriesInUse(tmpdir());
  expect(existsSync(made)).toBe(true);
  await service.close();
  expect(existsSync(made)).toBe(false);
});

test('memory: true keeps the files of startService in /dev/shm if it has room, and close removes them', async () => {
  const service = await startService({ memory: true });
  const [made = ''] = directoriesInUse(hasRoomInMemory() ? '/dev/shm' : tmpdir());
  expect(existsSync(made)).toBe(true);
  expect((await upload(service, '/a.txt', 'text')).status).toBe(200);
  await service.close();
  expect(existsSync(made)).toBe(false);
});

function hasRoomInMemory(): boolean {
  if (!existsSync('/dev/shm')) return false;
  const { bavail, bsize } = statfsSync('/dev/shm');
  return bavail * bsize >= 256 * 1024 ** 2;
}

test('startService refuses memory together with directory', async () => {
  await expect(startService({ memory: true, directory: '/nowhere' })).rejects.toThrow(
    /memory and directory exclude each other/,
  );
});
