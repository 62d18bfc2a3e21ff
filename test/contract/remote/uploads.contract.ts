import { beforeAll, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import { BLOCK_BYTES, ContentHasher, contentHashOf } from '../../../src/util/content-hash.ts';
import { path } from '../../support/paths.ts';
import { ABSENT, ANY, bytes, filled, type RemoteUnderTest } from './remote-under-test.ts';

/** What is committed, under which condition, in one call and in sessions. */
export function uploadsContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { room } = drive;

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
}
