import { request } from 'node:http';
import { expect, test } from 'vitest';
import type { Drive } from '../../../src/dav/context.ts';
import type { FileEntry, Listing } from '../../../src/drive/files.ts';
import type { Lock } from '../../../src/state/locks.ts';
import { pathOf, ROOT } from '../../../src/util/path.ts';
import { type PropertyServer, startPropertyServer } from '../../support/property-server.ts';

const MIB = 1024 * 1024;
const LIVE =
  '<propfind xmlns="DAV:"><prop><displayname/><getetag/><getcontentlength/><getlastmodified/></prop></propfind>';
const LOCKS = '<propfind xmlns="DAV:"><prop><getetag/><lockdiscovery/></prop></propfind>';

/** Rows of about 300 bytes: an answer of 10 MiB. */
const MANY = 35_000;

/** A drive whose root has as many files as wanted. It counts the rows that are rendered. */
class LongFolder {
  rendered = 0;
  children: readonly FileEntry[];
  #listing: Listing | undefined;

  constructor(files: number) {
    this.children = Array.from({ length: files }, (_, index) => this.file(index, 1));
  }

  /** Returns the entry of a file in its first, second … revision. */
  file(index: number, revision: number): FileEntry {
    const count = () => {
      this.rendered += 1;
    };
    const name = `file ${String(index).padStart(6, '0')} with a name of usual length.txt`;
    return {
      kind: 'file',
      id: `id:${index}`,
      path: pathOf([name]),
      name,
      rev: `${index}r${revision}`,
      modifiedMs: 1_600_000_000_000,
      committedMs: 1_600_000_000_000,
      get sizeBytes() {
        count();
        return index;
      },
    };
  }

  change(children: readonly FileEntry[]): void {
    this.children = children;
    this.#listing = undefined;
  }

  readonly wrap = ({ files, state }: Drive): Drive => ({
    state,
    files: new Proxy(files, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (name === 'list') return () => this.#list(files);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }),
  });

  async #list(files: Drive['files']): Promise<Listing> {
    const folder = await files.stat(ROOT);
    if (folder?.kind !== 'folder') throw new Error('a drive without a root');
    this.#listing ??= { folder, children: this.children };
    return this.#listing;
  }
}

async function listed(server: PropertyServer, body = LIVE) {
  // Not `server.send`, which parses each row.
  const init = { method: 'PROPFIND', body, headers: { Depth: '1' } };
  const answer = await fetch(`http://127.0.0.1:${server.port}/`, init);
  expect(answer.status).toBe(207);
  return { text: await answer.text(), headers: answer.headers };
}

/** Returns the answer of a server that has rendered nothing before. */
async function rendered(children: readonly FileEntry[], body = LIVE): Promise<string> {
  const folder = new LongFolder(0);
  folder.change(children);
  return (await listed(await startPropertyServer({ wrap: folder.wrap }), body)).text;
}

test('PROPFIND of a folder whose answer is too long for a Content-Length is rendered once', async () => {
  const folder = new LongFolder(MANY);
  const server = await startPropertyServer({ wrap: folder.wrap });
  const first = await listed(server);
  expect(first.headers.get('content-length')).toBeNull();
  expect(first.text.length).toBeGreaterThan(8 * MIB);
  expect(first.text.match(/<D:response>/g)).toHaveLength(MANY + 1);
  expect(folder.rendered).toBe(MANY);
  expect((await listed(server)).text === first.text).toBe(true);
  expect(folder.rendered).toBe(MANY);
});

test('PROPFIND of a folder that is too large to be kept shows all of it each time', async () => {
  const folder = new LongFolder(MANY);
  const server = await startPropertyServer({ wrap: folder.wrap, listingBytesMax: MIB });
  const first = await listed(server);
  expect(first.text.match(/<D:response>/g)).toHaveLength(MANY + 1);
  expect((await listed(server)).text === first.text).toBe(true);
});

test('PROPFIND of a long folder after a change renders only the rows around the change again', async () => {
  const folder = new LongFolder(MANY);
  const server = await startPropertyServer({ wrap: folder.wrap });
  await listed(server);
  const { children } = folder;
  const changes: Record<string, readonly FileEntry[]> = {
    'a new file': [...children, folder.file(MANY, 1)],
    'a removed first file': children.slice(1),
    'a removed file in the middle': children.toSpliced(MANY / 2, 1),
    'a changed file, which is the last one now': [...children.slice(0, 99), ...children.slice(100)].concat(
      folder.file(99, 2),
    ),
    'a file replaced in its place': children.with(MANY / 2, folder.file(MANY / 2, 2)),
    'another order': [...children.slice(MANY / 2), ...children.slice(0, MANY / 2)],
  };
  for (const [what, changed] of Object.entries(changes)) {
    folder.change(changed);
    folder.rendered = 0;
    const { text } = await listed(server);
    expect(folder.rendered, what).toBeLessThan(MANY / 4);
    expect(text === (await rendered(changed)), what).toBe(true);
  }
});

test('PROPFIND of a folder that grows file by file shows each new file', async () => {
  const folder = new LongFolder(3);
  const server = await startPropertyServer({ wrap: folder.wrap });
  for (let files = 4; files < 40; files++) {
    folder.change([...folder.children, folder.file(files, 1)]);
    expect((await listed(server)).text).toBe(await rendered(folder.children));
  }
});

test('a property or lock in a long folder is shown when it is set, and not when it is gone', async () => {
  const folder = new LongFolder(3_000);
  const server = await startPropertyServer({ wrap: folder.wrap });
  const named = '<propfind xmlns="DAV:"><prop><getetag/><x xmlns="urn:x"/></prop></propfind>';
  const plain = (await listed(server, named)).text;
  const unlocked = (await listed(server, LOCKS)).text;
  const file = folder.children[1_500];
  if (!file) throw new Error('no such file');

  const { properties, locks } = server.state;
  const x = { namespace: 'urn:x', name: 'x' };
  await properties.change(file.id, [{ set: { ...x, xml: '<x xmlns="urn:x">here</x>' } }]);
  expect((await listed(server, named)).text.match(/here/g)).toHaveLength(1);
  expect((await listed(server, named)).text.match(/here/g)).toHaveLength(1);
  await properties.change(file.id, [{ remove: x }]);
  expect((await listed(server, named)).text).toBe(plain);

  const lock: Lock = {
    token: 'urn:uuid:1',
    root: file.path,
    scope: 'exclusive',
    depth: '0',
    ownerXml: 'Ann',
    principal: 'ann',
    timeoutSeconds: 600,
    expiresMs: server.clock.now() + 600_000,
  };
  await locks.create(server.clock.now(), lock);
  folder.rendered = 0;
  for (const round of [1, 2])
    expect((await listed(server, LOCKS)).text.match(/<D:href>urn:uuid:1</g), `${round}`).toHaveLength(1);
  await locks.release(lock.token);
  expect((await listed(server, LOCKS)).text).toBe(unlocked);
});

test('PROPFIND of a long folder renders only as far as its client reads', async () => {
  const folder = new LongFolder(4 * MANY);
  const server = await startPropertyServer({ wrap: folder.wrap });
  const response = await new Promise<NodeJS.ReadableStream & { destroy(): void }>((resolve) => {
    const headers = { Depth: '1' };
    request({ port: server.port, method: 'PROPFIND', headers }, resolve).end(LIVE);
  });
  // The buffers of the connection take a few MB of 40.
  const follow = async (before: number): Promise<number> => {
    await server.send('PROPFIND', '/missing', LIVE, { Depth: '0' });
    return folder.rendered === before ? before : follow(folder.rendered);
  };
  expect(await follow(-1)).toBeLessThan(3 * MANY);
  response.destroy();
});

test('PROPFIND of a long folder by several clients at once sends each of them all of it', async () => {
  const folder = new LongFolder(MANY);
  const server = await startPropertyServer({ wrap: folder.wrap });
  const expected = await rendered(folder.children);
  const answers = await Promise.all(Array.from({ length: 4 }, () => listed(server)));
  for (const { text } of answers) expect(text === expected).toBe(true);
  expect((await listed(server)).text === expected).toBe(true);
});

test('a listing of 3,000 files that all have properties shows those of each, and has those of some hundred in memory', async () => {
  const folder = new LongFolder(3000);
  const asked: number[] = [];
  const server = await startPropertyServer({
    wrap(drive) {
      const { files, state } = folder.wrap(drive);
      const of = async (ids: readonly string[]) => {
        asked.push(ids.length);
        const xml = (id: string) => `<x xmlns="urn:x">of ${id}</x>`;
        return new Map(ids.map((id) => [id, [{ namespace: 'urn:x', name: 'x', xml: xml(id) }]]));
      };
      return { files, state: { ...state, properties: { ...state.properties, of } } };
    },
  });
  for (const depth of ['1', '1,noroot']) {
    asked.length = 0;
    const { text } = await server.send('PROPFIND', '/', undefined, { Depth: depth });
    for (const { id } of folder.children) expect(text).toContain(`>of ${id}<`);
    expect(Math.max(...asked)).toBeLessThan(600);
  }
});
