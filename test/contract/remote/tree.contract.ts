import { beforeAll, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import { ROOT } from '../../../src/util/path.ts';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ANY, listed, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests creating, removing, moving and copying. */
export function treeContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { newFolder } = drive;

  describe('the tree', () => {
    test('createFolder creates a folder once, and not over a file', async () => {
      const folder = await newFolder();
      const made = await remote.createFolder(path(`${folder}/New`));
      expect(made).toMatchObject({ kind: 'folder', path: `${folder}/New`, name: 'New' });
      expect(await remote.stat(made.path)).toEqual(made);
      await expect(remote.createFolder(path(`${folder}/nEW`))).rejects.toMatchObject({
        failure: 'conflict-folder',
      });
      await remote.write(path(`${folder}/f`), bodyOf('x'), ANY);
      await expect(remote.createFolder(path(`${folder}/f`))).rejects.toMatchObject({
        failure: 'conflict-file',
      });
    });

    test.each([{ permanent: false }, { permanent: true }])(
      'remove deletes a folder with its content, and fails with not-found for a missing one: %o',
      async (how) => {
        const folder = await newFolder();
        const file = await remote.write(path(`${folder}/one/f`), bodyOf('x'), ANY);
        await remote.remove(path(folder), how);
        expect(await remote.stat(file.path)).toBeUndefined();
        await expect(remote.remove(path(folder), how)).rejects.toMatchObject({ failure: 'not-found' });
      },
    );

    test.each([{ permanent: false }, { permanent: true }])(
      'remove deletes a file only if it has the given revision: %o',
      async (how) => {
        const folder = await newFolder();
        const first = await remote.write(path(`${folder}/f`), bodyOf('x'), ANY);
        const second = await remote.write(first.path, bodyOf('y'), ANY);
        await expect(remote.remove(first.path, { ...how, rev: first.rev })).rejects.toMatchObject({
          failure: 'conflict-file',
        });
        expect(await remote.stat(first.path)).toMatchObject({ rev: second.rev });
        await remote.remove(first.path, { ...how, rev: second.rev });
        expect(await remote.stat(first.path)).toBeUndefined();
      },
    );

    test('move keeps the id of a file, and copy gives a new one', async () => {
      const folder = await newFolder();
      const file = await remote.write(path(`${folder}/f`), bodyOf('x'), ANY);
      const moved = await remote.move(file.path, path(`${folder}/g`));
      expect(moved).toMatchObject({ id: file.id, path: `${folder}/g` });
      const copied = await remote.copy(moved.path, path(`${folder}/h`));
      expect(copied).toMatchObject({ path: `${folder}/h`, contentHash: file.contentHash });
      expect(copied.id).not.toBe(file.id);
      expect((await listed(remote, path(folder), false)).map(({ name }) => name)).toEqual(['g', 'h']);
    });

    test('copy of a folder copies everything below it', async () => {
      const folder = await newFolder();
      await remote.write(path(`${folder}/a/b/c`), bodyOf('x'), ANY);
      await remote.copy(path(`${folder}/a`), path(`${folder}/z`));
      expect(await remote.stat(path(`${folder}/z/b/c`))).toMatchObject({ kind: 'file' });
    });

    test('move and copy do not overwrite, and fail for a missing source or a target within the source', async () => {
      const folder = await newFolder();
      const one = (await remote.write(path(`${folder}/one`), bodyOf('1'), ANY)).path;
      const two = (await remote.write(path(`${folder}/two`), bodyOf('2'), ANY)).path;
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

    test('the root can be listed, and not removed, created, moved, copied or written', async () => {
      const refused = { failure: 'no-permission' };
      await expect(remote.remove(ROOT, { permanent: false })).rejects.toMatchObject(refused);
      await expect(remote.createFolder(ROOT)).rejects.toMatchObject(refused);
      await expect(remote.move(ROOT, path('/x'))).rejects.toMatchObject(refused);
      await expect(remote.copy(ROOT, path('/x'))).rejects.toMatchObject(refused);
      await expect(remote.write(ROOT, bodyOf('x'), ANY)).rejects.toMatchObject(refused);
      expect((await listed(remote, ROOT, false)).length).toBeGreaterThan(0);
    });
  });
}
