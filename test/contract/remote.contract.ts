import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Entry, FileEntry, Page, Remote } from '../../src/api/remote.ts';
import { BLOCK_BYTES, ContentHasher, contentHashOf } from '../../src/util/content-hash.ts';
import { type Path, pathOf, ROOT } from '../../src/util/path.ts';

/** A `Remote` on a drive that is empty. */
export interface OpenedRemote {
  readonly remote: Remote;
  close(): Promise<void>;
}

export const path = (text: string): Path => pathOf(text.split('/').filter((name) => name !== ''));

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const ANY = { mode: { if: 'any' } } as const;
const ABSENT = { mode: { if: 'absent' } } as const;

/** What every `Remote` does, whatever is behind it. */
export function remoteContract(name: string, open: () => Promise<OpenedRemote>): void {
  describe(`Remote: ${name}`, () => {
    let opened: OpenedRemote;
    let remote: Remote;
    let folders = 0;

    beforeAll(async () => {
      opened = await open();
      remote = opened.remote;
    });
    afterAll(() => opened.close());

    /** A new, empty folder for one test. */
    const room = async (): Promise<string> => {
      folders += 1;
      await remote.createFolder(path(`/Room ${folders}`));
      return `/Room ${folders}`;
    };

    describe('entries', () => {
      test('a file is as it was uploaded', async () => {
        const at = path(`${await room()}/Übung #1 %41.txt`);
        const modifiedMs = Date.UTC(2020, 1, 3, 4, 5, 6);
        const file = await remote.upload(at, bytes('content'), { ...ABSENT, modifiedMs });
        expect(file).toMatchObject({
          kind: 'file',
          path: at,
          name: 'Übung #1 %41.txt',
          sizeBytes: 7,
          contentHash: contentHashOf(bytes('content')),
          modifiedMs,
        });
        expect(await remote.stat(at)).toEqual(file);
      });

      test('names are found whatever their case and normal form', async () => {
        const folder = await room();
        await remote.upload(path(`${folder}/Übung.TXT`), bytes('x'), ANY);
        expect(await remote.stat(path(`${folder.toUpperCase()}/u\u0308BUNG.txt`))).toMatchObject({
          name: 'Übung.TXT',
        });
      });

      test('what is not there is undefined', async () => {
        expect(await remote.stat(path('/not/here'))).toBeUndefined();
      });

      test('a name that the service cannot take is refused as such', async () => {
        const folder = await room();
        await expect(remote.upload(path(`${folder}/.DS_Store`), bytes('x'), ANY)).rejects.toMatchObject({
          failure: 'disallowed-name',
        });
        await expect(remote.upload(path(`${folder}/back\\slash`), bytes('x'), ANY)).rejects.toMatchObject({
          failure: 'malformed-path',
        });
      });
    });

    describe('listings', () => {
      test('children of a folder, and of the root', async () => {
        const folder = await room();
        const file = await remote.upload(path(`${folder}/b.txt`), bytes('b'), ANY);
        const inner = await remote.createFolder(path(`${folder}/A`));
        await remote.upload(path(`${folder}/A/deep.txt`), bytes('deep'), ANY);
        expect(await listed(remote, path(folder), false)).toEqual([inner, file]);
        expect((await listed(remote, ROOT, false)).map((entry) => entry.path)).toContain(folder);
      });

      test('all below a folder, without the folder itself', async () => {
        const folder = await room();
        await remote.upload(path(`${folder}/one/two/three.txt`), bytes('3'), ANY);
        const found = await listed(remote, path(folder), true);
        expect(found.map((entry) => entry.path)).toEqual([
          `${folder}/one`,
          `${folder}/one/two`,
          `${folder}/one/two/three.txt`,
        ]);
      });

      test('an empty folder has no children', async () => {
        expect(await listed(remote, path(await room()), false)).toEqual([]);
      });

      test('of nothing, and of a file', async () => {
        const file = await remote.upload(path(`${await room()}/f`), bytes('x'), ANY);
        await expect(listed(remote, path('/not/here'), false)).rejects.toMatchObject({
          failure: 'not-found',
        });
        await expect(listed(remote, file.path, false)).rejects.toMatchObject({ failure: 'not-folder' });
      });
    });

    describe('the change feed', () => {
      test('tells what came, moved and went since a cursor, and then of nothing more', async () => {
        const folder = await room();
        const kept = await remote.upload(path(`${folder}/kept`), bytes('1'), ANY);
        const gone = await remote.upload(path(`${folder}/gone`), bytes('2'), ANY);
        const cursor = await remote.latestCursor();
        const moved = await remote.move(kept.path, path(`${folder}/moved`));
        await remote.remove(gone.path, { permanent: false });
        const { changes, cursor: after } = await allSince(remote, cursor);
        expect(changes).toContainEqual({ kind: 'put', entry: moved });
        expect(changes).toContainEqual({ kind: 'deleted', path: gone.path });
        expect(changes).toContainEqual({ kind: 'deleted', path: kept.path });
        expect((await allSince(remote, after)).changes).toEqual([]);
      });

      test('wakes who waits for a change', async () => {
        const folder = await room();
        const cursor = await remote.latestCursor();
        const woken = remote.awaitChange(cursor, 30_000);
        await remote.upload(path(`${folder}/news`), bytes('x'), ANY);
        expect(await woken).toBe(true);
      });

      test('a wait ends with its signal', async () => {
        const abort = new AbortController();
        const waiting = remote.awaitChange(await remote.latestCursor(), 30_000, abort.signal);
        const reason = new Error('enough');
        abort.abort(reason);
        await expect(waiting).rejects.toBe(reason);
      });

      test('a cursor that is none has to be replaced', async () => {
        await expect(remote.changesSince('no cursor of theirs')).rejects.toMatchObject({ failure: 'reset' });
      });
    });

    describe('downloads', () => {
      test('all of a file, and parts of it', async () => {
        const file = await remote.upload(path(`${await room()}/digits`), bytes('0123456789'), ANY);
        expect(await read(remote, file)).toBe('0123456789');
        expect(await read(remote, file, { start: 3, end: 5 })).toBe('34');
        expect(await read(remote, file, { start: 8, end: 10 })).toBe('89');
      });

      test('an empty file', async () => {
        const file = await remote.upload(path(`${await room()}/empty`), bytes(''), ANY);
        expect(await read(remote, file)).toBe('');
      });

      test('the revision that was asked for, though there is a newer one', async () => {
        const at = path(`${await room()}/f`);
        const old = await remote.upload(at, bytes('old'), ANY);
        await remote.upload(at, bytes('newer'), ANY);
        expect(await read(remote, old)).toBe('old');
      });

      test('not what is gone for good', async () => {
        const file = await remote.upload(path(`${await room()}/f`), bytes('x'), ANY);
        await remote.remove(file.path, { permanent: true });
        await expect(remote.download(file, undefined)).rejects.toMatchObject({ failure: 'not-found' });
      });
    });

    describe('uploads', () => {
      test('each condition is held by the service', async () => {
        const at = path(`${await room()}/f`);
        const first = await remote.upload(at, bytes('first'), ABSENT);
        await expect(remote.upload(at, bytes('other'), ABSENT)).rejects.toMatchObject({
          failure: 'conflict-file',
        });
        // Equal content does not make the condition true.
        await expect(remote.upload(at, bytes('first'), ABSENT)).rejects.toMatchObject({
          failure: 'conflict-file',
        });
        const second = await remote.upload(at, bytes('second'), { mode: { if: 'rev', rev: first.rev } });
        expect(second).toMatchObject({ id: first.id });
        expect(second.rev).not.toBe(first.rev);
        await expect(
          remote.upload(at, bytes('third'), { mode: { if: 'rev', rev: first.rev } }),
        ).rejects.toMatchObject({ failure: 'conflict-file' });
        expect(await remote.upload(at, bytes('third'), ANY)).toMatchObject({ id: first.id, sizeBytes: 5 });
      });

      test('a revision that was removed cannot be replaced', async () => {
        const at = path(`${await room()}/f`);
        const { rev } = await remote.upload(at, bytes('x'), ANY);
        await remote.remove(at, { permanent: false });
        await expect(remote.upload(at, bytes('y'), { mode: { if: 'rev', rev } })).rejects.toMatchObject({
          failure: 'conflict-file',
        });
        expect(await remote.stat(at)).toBeUndefined();
      });

      test('the content that is there already, under its own revision', async () => {
        const at = path(`${await room()}/f`);
        const file = await remote.upload(at, bytes('same'), ANY);
        expect(await remote.upload(at, bytes('same'), { mode: { if: 'rev', rev: file.rev } })).toMatchObject({
          id: file.id,
          contentHash: file.contentHash,
        });
      });

      test('not over a folder, nor below a file', async () => {
        const folder = await room();
        await expect(remote.upload(path(folder), bytes('x'), ANY)).rejects.toMatchObject({
          failure: 'conflict-folder',
        });
        await remote.upload(path(`${folder}/f`), bytes('x'), ANY);
        await expect(remote.upload(path(`${folder}/f/g`), bytes('x'), ANY)).rejects.toMatchObject({
          failure: 'conflict-ancestor',
        });
      });
    });

    describe('upload sessions', () => {
      const parts = [filled(BLOCK_BYTES, 1), filled(BLOCK_BYTES, 2), filled(5, 3)] as const;
      const sizeBytes = 2 * BLOCK_BYTES + 5;
      const contentHash = parts.reduce((hash, part) => hash.update(part), new ContentHasher()).digest();

      const sent = async () => {
        const session = await remote.startSession();
        await Promise.all([
          remote.appendSession(session, { offset: BLOCK_BYTES, bytes: parts[1], last: false }),
          remote.appendSession(session, { offset: 0, bytes: parts[0], last: false }),
        ]);
        await remote.appendSession(session, { offset: 2 * BLOCK_BYTES, bytes: parts[2], last: true });
        return session;
      };

      test('parts in any order make the file', async () => {
        const at = path(`${await room()}/big`);
        const session = await sent();
        expect(await remote.stat(at)).toBeUndefined();
        const file = await remote.finishSession({ session, sizeBytes, path: at, options: ABSENT });
        expect(file).toMatchObject({ path: at, sizeBytes, contentHash });
        expect(await remote.stat(at)).toEqual(file);
      });

      test('a session that is used up, or never was, is gone', async () => {
        const at = path(`${await room()}/big`);
        const session = await sent();
        const commit = { session, sizeBytes, contentHash, path: at, options: ANY };
        await remote.finishSession(commit);
        await expect(remote.finishSession({ ...commit, path: path('/elsewhere') })).rejects.toMatchObject({
          failure: 'session-gone',
        });
        await expect(
          remote.appendSession({ id: 'no-session' }, { offset: 0, bytes: bytes('x'), last: true }),
        ).rejects.toMatchObject({ failure: 'session-gone' });
      });

      test.each([0, 1, 3, 130])('%d short contents at a time, each in its own session', async (count) => {
        const folder = await room();
        const contents = Array.from({ length: count }, (_, index) => filled(index === 1 ? 0 : index, index));
        const staged = await remote.stageContents(
          contents.map((content) => ({ bytes: content, contentHash: contentHashOf(content) })),
        );
        const commits = staged.map((session, index) => {
          if (session instanceof Error) throw session;
          const content = contents[index] ?? bytes('');
          const at = path(`${folder}/${index}`);
          return { session, sizeBytes: content.length, path: at, options: ABSENT };
        });
        expect(new Set(commits.map(({ session }) => session.id)).size).toBe(count);
        const files = await remote.finishSessions(commits);
        expect(files).toMatchObject(
          contents.map((content) => ({ sizeBytes: content.length, contentHash: contentHashOf(content) })),
        );
      });

      test('many commits in one call, each with its own outcome, told as soon as it is known', async () => {
        const folder = await room();
        const taken = await remote.upload(path(`${folder}/taken`), bytes('x'), ANY);
        const commits = await Promise.all(
          ['a', 'taken', 'b'].map(async (name) => {
            const session = await remote.startSession();
            await remote.appendSession(session, { offset: 0, bytes: bytes(name), last: true });
            return { session, sizeBytes: name.length, path: path(`${folder}/${name}`), options: ABSENT };
          }),
        );
        const told = new Map<number, unknown>();
        const outcomes = await remote.finishSessions(commits, undefined, (index, outcome) => {
          told.set(index, outcome);
        });
        expect([0, 1, 2].map((index) => told.get(index))).toEqual(outcomes);
        const [a, conflict, b] = outcomes;
        expect(a).toMatchObject({ path: `${folder}/a`, sizeBytes: 1 });
        expect(conflict).toMatchObject({ failure: 'conflict-file' });
        expect(b).toEqual(await remote.stat(path(`${folder}/b`)));
        expect(await remote.stat(taken.path)).toEqual(taken);
      });
    });

    describe('the tree', () => {
      test('a folder is made once', async () => {
        const folder = await room();
        const made = await remote.createFolder(path(`${folder}/New`));
        expect(made).toMatchObject({ kind: 'folder', path: `${folder}/New`, name: 'New' });
        expect(await remote.stat(made.path)).toEqual(made);
        await expect(remote.createFolder(path(`${folder}/nEW`))).rejects.toMatchObject({
          failure: 'conflict-folder',
        });
        await remote.upload(path(`${folder}/f`), bytes('x'), ANY);
        await expect(remote.createFolder(path(`${folder}/f`))).rejects.toMatchObject({
          failure: 'conflict-file',
        });
      });

      test.each([{ permanent: false }, { permanent: true }])('removes files and folders: %o', async (how) => {
        const folder = await room();
        const file = await remote.upload(path(`${folder}/one/f`), bytes('x'), ANY);
        await remote.remove(path(folder), how);
        expect(await remote.stat(file.path)).toBeUndefined();
        await expect(remote.remove(path(folder), how)).rejects.toMatchObject({ failure: 'not-found' });
      });

      test.each([{ permanent: false }, { permanent: true }])(
        'removes a file only as long as it is the revision that was meant: %o',
        async (how) => {
          const folder = await room();
          const first = await remote.upload(path(`${folder}/f`), bytes('x'), ANY);
          const second = await remote.upload(first.path, bytes('y'), ANY);
          await expect(remote.remove(first.path, { ...how, rev: first.rev })).rejects.toMatchObject({
            failure: 'conflict-file',
          });
          expect(await remote.stat(first.path)).toMatchObject({ rev: second.rev });
          await remote.remove(first.path, { ...how, rev: second.rev });
          expect(await remote.stat(first.path)).toBeUndefined();
        },
      );

      test('a move keeps the id, a copy makes a new one', async () => {
        const folder = await room();
        const file = await remote.upload(path(`${folder}/f`), bytes('x'), ANY);
        const moved = await remote.move(file.path, path(`${folder}/g`));
        expect(moved).toMatchObject({ id: file.id, path: `${folder}/g` });
        const copied = await remote.copy(moved.path, path(`${folder}/h`));
        expect(copied).toMatchObject({ path: `${folder}/h`, contentHash: file.contentHash });
        expect(copied.id).not.toBe(file.id);
        expect((await listed(remote, path(folder), false)).map(({ name }) => name)).toEqual(['g', 'h']);
      });

      test('a folder is copied with all below it', async () => {
        const folder = await room();
        await remote.upload(path(`${folder}/a/b/c`), bytes('x'), ANY);
        await remote.copy(path(`${folder}/a`), path(`${folder}/z`));
        expect(await remote.stat(path(`${folder}/z/b/c`))).toMatchObject({ kind: 'file' });
      });

      test('neither overwrites, nor goes into itself, nor takes what is not there', async () => {
        const folder = await room();
        const one = (await remote.upload(path(`${folder}/one`), bytes('1'), ANY)).path;
        const two = (await remote.upload(path(`${folder}/two`), bytes('2'), ANY)).path;
        for (const relocate of [remote.move, remote.copy]) {
          await expect(relocate(one, two)).rejects.toMatchObject({ failure: 'conflict-file' });
          await expect(relocate(path(`${folder}/none`), path(`${folder}/x`))).rejects.toMatchObject({
            failure: 'not-found',
          });
          await expect(relocate(path(folder), path(`${folder}/inner`))).rejects.toMatchObject({
            failure: 'into-itself',
          });
        }
      });

      test('the root can be listed but not changed', async () => {
        const refused = { failure: 'no-permission' };
        await expect(remote.remove(ROOT, { permanent: false })).rejects.toMatchObject(refused);
        await expect(remote.createFolder(ROOT)).rejects.toMatchObject(refused);
        await expect(remote.move(ROOT, path('/x'))).rejects.toMatchObject(refused);
        await expect(remote.copy(ROOT, path('/x'))).rejects.toMatchObject(refused);
        await expect(remote.upload(ROOT, bytes('x'), ANY)).rejects.toMatchObject(refused);
        expect((await listed(remote, ROOT, false)).length).toBeGreaterThan(0);
      });
    });

    test('space is counted', async () => {
      const before = await remote.quota();
      await remote.upload(path(`${await room()}/f`), filled(100_000, 7), ANY);
      const after = await remote.quota();
      expect(after?.allocatedBytes).toBeGreaterThan(after?.usedBytes ?? 0);
      expect((after?.usedBytes ?? 0) - (before?.usedBytes ?? 0)).toBeGreaterThanOrEqual(100_000);
    });

    describe('shared links', () => {
      test('one is made, found, and revoked', async () => {
        const at = path(`${await room()}/shared.txt`);
        await remote.upload(at, bytes('x'), ANY);
        expect(await remote.sharedLink(at)).toBeUndefined();
        const link = await remote.createSharedLink(at, {});
        expect(link).toMatchObject({ visibility: 'public', url: expect.stringMatching(/^https?:\/\//) });
        expect(await remote.sharedLink(at)).toEqual(link);
        await remote.revokeSharedLink(link.url);
        expect(await remote.sharedLink(at)).toBeUndefined();
        await expect(remote.revokeSharedLink(link.url)).rejects.toMatchObject({ failure: 'link-gone' });
      });

      test('not two for the same path', async () => {
        const folder = await room();
        await remote.createSharedLink(path(folder), {});
        await expect(
          remote.createSharedLink(path(folder), { visibility: 'password', password: 'secret' }),
        ).rejects.toMatchObject({ failure: 'link-exists' });
        // A link of the folder is none of what is in it.
        const file = await remote.upload(path(`${folder}/f`), bytes('x'), ANY);
        expect(await remote.sharedLink(file.path)).toBeUndefined();
      });

      test('with a password and an end', async () => {
        const at = path(`${await room()}/secret.txt`);
        await remote.upload(at, bytes('x'), ANY);
        const expiresMs = Date.UTC(2100, 0, 1);
        const settings = { visibility: 'password', password: 'opensesame', expiresMs } as const;
        const link = await remote.createSharedLink(at, settings);
        expect(link).toMatchObject({ visibility: 'password', expiresMs });
        expect(JSON.stringify(await remote.sharedLink(at))).not.toContain('opensesame');
      });

      test('settings without sense are refused', async () => {
        const folder = await room();
        await expect(remote.createSharedLink(path(folder), { visibility: 'password' })).rejects.toMatchObject(
          { failure: 'link-settings' },
        );
      });
    });
  });
}

function filled(sizeBytes: number, value: number): Uint8Array {
  return new Uint8Array(sizeBytes).fill(value);
}

async function listed(remote: Remote, folder: Path, recursive: boolean): Promise<Entry[]> {
  const entries = new Map<string, Entry>();
  for await (const { changes } of remote.list(folder, { recursive })) {
    for (const change of changes) if (change.kind === 'put') entries.set(change.entry.path, change.entry);
  }
  return [...entries.values()].sort((one, other) => (one.path < other.path ? -1 : 1));
}

async function allSince(remote: Remote, since: string): Promise<Pick<Page, 'changes' | 'cursor'>> {
  let page = await remote.changesSince(since);
  const changes = [...page.changes];
  while (page.hasMore) {
    page = await remote.changesSince(page.cursor);
    changes.push(...page.changes);
  }
  return { changes, cursor: page.cursor };
}

async function read(
  remote: Remote,
  file: FileEntry,
  range?: { start: number; end: number },
): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await remote.download(file, range)).bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
