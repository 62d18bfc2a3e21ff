import { afterEach, expect, test } from 'vitest';
import type { Directory } from '../../../src/service/directory/directory.ts';
import type { TemporaryLinks } from '../../../src/service/links/temporary-links.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Gate } from '../../support/gate.ts';
import { type Answered, send } from '../../support/service-client.ts';
import { NAMESPACE, type ServiceOver, serviceOver } from '../../support/service-over.ts';
import { opened } from '../storage/opened.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/**
 * Starts two services with the same accounts, links and storage, as two processes have them. Returns their addresses of one
 * upload link.
 */
async function twoServices({
  storage,
  links = (own) => own,
}: {
  readonly storage: Storage;
  readonly links?: (own: TemporaryLinks) => TemporaryLinks;
}): Promise<[string, string]> {
  const [service, directory] = await started(storage, (own) => ({
    ...own,
    temporaryLinks: links(own.temporaryLinks),
  }));
  const [other] = await started(storage, () => directory);
  const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' };
  const argument = JSON.stringify({ commit_info: { path: '/file', mode: 'add', autorename: true } });
  const asked = { method: 'POST', headers, body: argument };
  const { json } = await send(`${service.url}/2/files/get_temporary_upload_link`, asked);
  const { link } = json as { link: string };
  return [link.replace('http://service', service.url), link.replace('http://service', other.url)];
}

async function started(
  storage: Storage,
  directoryOf: (own: Directory) => Directory,
): Promise<[ServiceOver, Directory]> {
  const directories: Directory[] = [];
  const service = await serviceOver(storage, silentLog, (own) => {
    const directory = directoryOf(own);
    directories.push(directory);
    return directory;
  });
  closers.push(() => service.close());
  const [directory] = directories;
  if (!directory) throw new Error('the service has asked for its directory');
  return [service, directory];
}

async function emptyStorage(): Promise<Storage> {
  const storage = await opened();
  await storage.createNamespace(NAMESPACE, 2 ** 30);
  return storage;
}

function upload(url: string, body: string): Promise<Answered> {
  return send(url, { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body });
}

async function filesIn(storage: Storage): Promise<number> {
  const owner = { namespace: NAMESPACE, account: '', app: '' };
  const page = await storage.list(owner, { path: '', recursive: true, includeDeleted: false }, 10);
  return page.entries.length;
}

test('a temporary upload link takes one file also when another process gets a second upload before the first one ends', async () => {
  const storage = await emptyStorage();
  const [begun, answered] = [new Gate(), new Gate()];
  const waiting: Storage = {
    ...storage,
    async upload(...call) {
      begun.open();
      await answered.pass();
      return await storage.upload(...call);
    },
  };
  const [url, otherUrl] = await twoServices({ storage: waiting });
  const first = upload(url, 'first');
  await begun.pass();
  expect((await upload(otherUrl, 'second')).status).toBe(409);
  answered.open();
  expect((await first).status).toBe(200);
  expect((await upload(otherUrl, 'third')).status).toBe(410);
  expect(await filesIn(storage)).toBe(1);
});

test('a temporary upload link takes one file also when its process is killed between the commit and the end of the link', async () => {
  const storage = await emptyStorage();
  const killed = (own: TemporaryLinks): TemporaryLinks => ({
    ...own,
    markUsed: async () => {
      throw new Error('killed');
    },
  });
  const [url, otherUrl] = await twoServices({ storage, links: killed });
  expect((await upload(url, 'first')).status).toBe(500);
  expect((await upload(otherUrl, 'second')).status).toBe(409);
  expect(await filesIn(storage)).toBe(1);
});

test('a temporary upload link takes one file also when the storage has stored it and then fails', async () => {
  const storage = await emptyStorage();
  const failing: Storage = {
    ...storage,
    async upload(...call) {
      await storage.upload(...call);
      throw new Error('the answer to the COMMIT is lost');
    },
  };
  const [url, otherUrl] = await twoServices({ storage: failing });
  expect((await upload(url, 'first')).status).toBe(500);
  expect((await upload(otherUrl, 'second')).status).toBe(409);
  expect(await filesIn(storage)).toBe(1);
});
