import { beforeAll, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import { BLOCK_BYTES, contentHashOf } from '../../../src/util/content-hash.ts';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ABSENT, ANY, filled, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests what `write` commits and under which conditions. */
export function writeContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { newFolder } = drive;

  describe('write', () => {
    test('write commits only when the condition of its mode holds', async () => {
      const at = path(`${await newFolder()}/f`);
      const first = await remote.write(at, bodyOf('first'), ABSENT);
      await expect(remote.write(at, bodyOf('other'), ABSENT)).rejects.toMatchObject({
        failure: 'conflict-file',
      });
      // Equal content does not make the condition true.
      await expect(remote.write(at, bodyOf('first'), ABSENT)).rejects.toMatchObject({
        failure: 'conflict-file',
      });
      const second = await remote.write(at, bodyOf('second'), { mode: { if: 'rev', rev: first.rev } });
      expect(second).toMatchObject({ id: first.id });
      expect(second.rev).not.toBe(first.rev);
      await expect(
        remote.write(at, bodyOf('third'), { mode: { if: 'rev', rev: first.rev } }),
      ).rejects.toMatchObject({ failure: 'conflict-file' });
      expect(await remote.write(at, bodyOf('third'), ANY)).toMatchObject({ id: first.id, sizeBytes: 5 });
    });

    test('write with the revision of a removed file fails with conflict-file and makes nothing', async () => {
      const at = path(`${await newFolder()}/f`);
      const { rev } = await remote.write(at, bodyOf('x'), ANY);
      await remote.remove(at, { permanent: false });
      await expect(remote.write(at, bodyOf('y'), { mode: { if: 'rev', rev } })).rejects.toMatchObject({
        failure: 'conflict-file',
      });
      expect(await remote.stat(at)).toBeUndefined();
    });

    test('write of the same content with its own revision succeeds', async () => {
      const at = path(`${await newFolder()}/f`);
      const file = await remote.write(at, bodyOf('same'), ANY);
      expect(await remote.write(at, bodyOf('same'), { mode: { if: 'rev', rev: file.rev } })).toMatchObject({
        id: file.id,
        contentHash: file.contentHash,
      });
    });

    test('write onto a folder fails with conflict-folder, and below a file with conflict-ancestor', async () => {
      const folder = await newFolder();
      await expect(remote.write(path(folder), bodyOf('x'), ANY)).rejects.toMatchObject({
        failure: 'conflict-folder',
      });
      await remote.write(path(`${folder}/f`), bodyOf('x'), ANY);
      await expect(remote.write(path(`${folder}/f/g`), bodyOf('x'), ANY)).rejects.toMatchObject({
        failure: 'conflict-ancestor',
      });
    });

    test.each([0, 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 5])(
      'write stores a body of %d bytes as it is',
      async (sizeBytes) => {
        const at = path(`${await newFolder()}/f`);
        const content = filled(sizeBytes, 7);
        for (const options of [ANY, { ...ANY, sizeBytes }]) {
          const file = await remote.write(at, bodyOf(content, 100_000), options);
          expect(file).toMatchObject({ path: at, sizeBytes, contentHash: contentHashOf(content) });
          expect(await remote.stat(at)).toEqual(file);
        }
      },
    );

    test.each([
      ['shorter', BLOCK_BYTES + 5, BLOCK_BYTES + 6],
      ['longer', BLOCK_BYTES + 6, BLOCK_BYTES + 5],
      ['not empty', 1, 0],
    ])(
      'write of a body that is %s than announced fails with incomplete and keeps the old content',
      async (_, sizeBytes, announced) => {
        const at = path(`${await newFolder()}/f`);
        const old = await remote.write(at, bodyOf('old'), ANY);
        const written = remote.write(at, bodyOf(filled(sizeBytes, 7), 100_000), {
          ...ANY,
          sizeBytes: announced,
        });
        await expect(written).rejects.toMatchObject({ failure: 'incomplete' });
        expect(await remote.stat(at)).toEqual(old);
      },
    );

    test('write of a body that throws throws the same error and keeps the old content', async () => {
      const at = path(`${await newFolder()}/f`);
      const old = await remote.write(at, bodyOf('old'), ANY);
      const failure = new Error('the client went away');
      async function* broken() {
        yield filled(5, 7);
        throw failure;
      }
      await expect(remote.write(at, broken(), ANY)).rejects.toBe(failure);
      expect(await remote.stat(at)).toEqual(old);
    });

    test('an aborted write does not wait for a body that stalls, and makes nothing', async () => {
      const at = path(`${await newFolder()}/f`);
      const leaving = new AbortController();
      const reason = new Error('gone');
      async function* stalled() {
        yield filled(5, 7);
        setImmediate(() => leaving.abort(reason));
        await new Promise(() => {});
      }
      await expect(remote.write(at, stalled(), ANY, leaving.signal)).rejects.toBe(reason);
      expect(await remote.stat(at)).toBeUndefined();
    });

    test('write commits inside aroundCommit, once the body has ended', async () => {
      const at = path(`${await newFolder()}/f`);
      const events: string[] = [];
      async function* body() {
        yield filled(5, 7);
        events.push('the body ends');
      }
      await remote.write(at, body(), {
        ...ANY,
        async aroundCommit(commit) {
          events.push((await remote.stat(at)) ? 'too late' : 'before the commit');
          const file = await commit();
          events.push((await remote.stat(at)) ? 'after the commit' : 'too early');
          return file;
        },
      });
      expect(events).toEqual(['the body ends', 'before the commit', 'after the commit']);
    });

    test('a write whose aroundCommit throws makes nothing, and the next write to the path succeeds', async () => {
      const at = path(`${await newFolder()}/f`);
      const refusal = new Error('the folder was moved');
      const aroundCommit = () => Promise.reject(refusal);
      await expect(remote.write(at, bodyOf('x'), { ...ANY, aroundCommit })).rejects.toBe(refusal);
      expect(await remote.stat(at)).toBeUndefined();
      expect(await remote.write(at, bodyOf('next'), ANY)).toMatchObject({ sizeBytes: 4 });
    });

    test('writes to one path are committed one after the other', async () => {
      const at = path(`${await newFolder()}/f`);
      let underWay = 0;
      let most = 0;
      const write = (text: string) =>
        remote.write(at, bodyOf(text), {
          ...ANY,
          async aroundCommit(commit) {
            underWay += 1;
            most = Math.max(most, underWay);
            return commit().finally(() => {
              underWay -= 1;
            });
          },
        });
      await Promise.all([write('1'), write('22'), write('333')]);
      expect(most).toBe(1);
    });

    test('many writes at once each have their own outcome', async () => {
      const folder = await newFolder();
      const taken = await remote.write(path(`${folder}/7`), bodyOf('taken'), ANY);
      const names = Array.from({ length: 20 }, (_, index) => `${index}`);
      const outcomes = await Promise.allSettled(
        names.map((name) => remote.write(path(`${folder}/${name}`), bodyOf(name), ABSENT)),
      );
      const failed = names.filter((_, index) => outcomes[index]?.status === 'rejected');
      expect(failed).toEqual(['7']);
      expect(outcomes[7]).toMatchObject({ reason: { failure: 'conflict-file' } });
      expect(await remote.stat(taken.path)).toEqual(taken);
    });
  });
}
