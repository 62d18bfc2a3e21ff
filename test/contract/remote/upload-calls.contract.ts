import { beforeAll, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import type { UploadCalls } from '../../../src/api/write/upload-calls.ts';
import { BLOCK_BYTES, ContentHasher, contentHashOf } from '../../../src/util/content-hash.ts';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ABSENT, ANY, bytes, filled, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests the calls below `Remote.write`: upload sessions, staged contents and batches of commits. */
export function uploadCallsContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  let uploads: UploadCalls;
  beforeAll(() => {
    ({ remote, uploads } = drive);
  });
  const { newFolder } = drive;

  describe('upload calls', () => {
    const parts = [filled(BLOCK_BYTES, 1), filled(BLOCK_BYTES, 2), filled(5, 3)] as const;
    const sizeBytes = 2 * BLOCK_BYTES + 5;
    const contentHash = parts.reduce((hash, part) => hash.update(part), new ContentHasher()).digest();

    const sent = async () => {
      const session = await uploads.startSession();
      await Promise.all([
        uploads.appendSession(session, { offset: BLOCK_BYTES, bytes: parts[1], last: false }),
        uploads.appendSession(session, { offset: 0, bytes: parts[0], last: false }),
      ]);
      await uploads.appendSession(session, { offset: 2 * BLOCK_BYTES, bytes: parts[2], last: true });
      return session;
    };

    test('finishSession makes one file of parts that were sent in any order', async () => {
      const at = path(`${await newFolder()}/big`);
      const session = await sent();
      expect(await remote.stat(at)).toBeUndefined();
      const file = await uploads.finishSession({ session, sizeBytes, path: at, options: ABSENT });
      expect(file).toMatchObject({ path: at, sizeBytes, contentHash });
      expect(await remote.stat(at)).toEqual(file);
    });

    test('a session that is used up or unknown fails with session-gone', async () => {
      const at = path(`${await newFolder()}/big`);
      const session = await sent();
      const commit = { session, sizeBytes, contentHash, path: at, options: ANY };
      await uploads.finishSession(commit);
      await expect(uploads.finishSession({ ...commit, path: path('/elsewhere') })).rejects.toMatchObject({
        failure: 'session-gone',
      });
      await expect(
        uploads.appendSession({ id: 'no-session' }, { offset: 0, bytes: bytes('x'), last: true }),
      ).rejects.toMatchObject({ failure: 'session-gone' });
    });

    test.each([0, 1, 3, 130])(
      'stageContents puts each of %d short contents into a session of its own',
      async (count) => {
        const folder = await newFolder();
        const contents = Array.from({ length: count }, (_, index) => filled(index === 1 ? 0 : index, index));
        const staged = await uploads.stageContents(
          contents.map((content) => ({ bytes: content, contentHash: contentHashOf(content) })),
        );
        const commits = staged.map((session, index) => {
          if (session instanceof Error) throw session;
          const content = contents[index] ?? bytes('');
          const at = path(`${folder}/${index}`);
          return { session, sizeBytes: content.length, path: at, options: ABSENT };
        });
        expect(new Set(commits.map(({ session }) => session.id)).size).toBe(count);
        const files = await uploads.finishSessions(commits);
        expect(files).toMatchObject(
          contents.map((content) => ({ sizeBytes: content.length, contentHash: contentHashOf(content) })),
        );
      },
    );

    test('finishSessions returns an outcome for each commit, and reports each to its callback', async () => {
      const folder = await newFolder();
      const taken = await remote.write(path(`${folder}/taken`), bodyOf('x'), ANY);
      const commits = await Promise.all(
        ['a', 'taken', 'b'].map(async (name) => {
          const session = await uploads.startSession();
          await uploads.appendSession(session, { offset: 0, bytes: bytes(name), last: true });
          return { session, sizeBytes: name.length, path: path(`${folder}/${name}`), options: ABSENT };
        }),
      );
      const reported = new Map<number, unknown>();
      const outcomes = await uploads.finishSessions(commits, undefined, (index, outcome) => {
        reported.set(index, outcome);
      });
      expect([0, 1, 2].map((index) => reported.get(index))).toEqual(outcomes);
      const [a, conflict, b] = outcomes;
      expect(a).toMatchObject({ path: `${folder}/a`, sizeBytes: 1 });
      expect(conflict).toMatchObject({ failure: 'conflict-file' });
      expect(b).toEqual(await remote.stat(path(`${folder}/b`)));
      expect(await remote.stat(taken.path)).toEqual(taken);
    });
  });
}
