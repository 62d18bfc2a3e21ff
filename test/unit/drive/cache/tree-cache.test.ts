import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CachedFolder } from '../../../../src/drive/cache/tree-cache.ts';
import { ROOT } from '../../../../src/util/path.ts';
import { openDocs } from '../../../support/docs-drive.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await openDocs();
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('the tree cache', () => {
  test('a cached listing answers stats of its files and of missing names without a call', async () => {
    expect(await drive.questionsOf(() => drive.files.list(at('/docs')))).toEqual([
      'stat /docs',
      'list /docs',
    ]);
    const warm = async () => {
      expect(await drive.names(at('/docs'))).toEqual(['a.txt', 'b.txt']);
      expect(await drive.files.stat(at('/DOCS/A.txt'))).toMatchObject({ path: '/Docs/a.txt', kind: 'file' });
      expect(await drive.files.stat(at('/Docs/none'))).toBeUndefined();
      expect(await drive.files.stat(at('/Docs/a.txt/below'))).toBeUndefined();
      expect(await drive.files.stat(at('/Docs/none/below/that'))).toBeUndefined();
    };
    expect(await drive.questionsOf(warm)).toEqual([]);
  });

  test('a name that was found missing is not asked for again, in any letter case', async () => {
    expect(await drive.questionsOf(() => drive.files.stat(at('/Docs/none')))).toEqual([
      'stat /Docs',
      'stat /Docs/none',
    ]);
    expect(await drive.questionsOf(() => drive.files.stat(at('/docs/NONE')))).toEqual([]);
  });

  test('the third stat in a folder also lists the folder, and a fourth makes no call', async () => {
    await drive.files.stat(at('/Docs/one'));
    await drive.files.stat(at('/Docs/two'));
    const third = await drive.questionsOf(() => drive.files.stat(at('/Docs/three')));
    expect(third).toEqual(['list /Docs', 'stat /Docs/three']);
    await turn(10);
    expect(await drive.questionsOf(() => drive.files.stat(at('/Docs/four')))).toEqual([]);
  });

  test('concurrent listings of one folder share one call', async () => {
    const both = () => Promise.all([drive.files.list(ROOT), drive.files.list(ROOT), drive.files.list(ROOT)]);
    expect(await drive.questionsOf(both)).toEqual(['list /']);
  });

  test('a stat of the root makes no call', async () => {
    expect(await drive.questionsOf(() => drive.files.stat(ROOT))).toEqual([]);
    expect((await drive.files.list(ROOT)).folder).toMatchObject({ kind: 'folder', path: '/', name: '' });
  });

  test('a listing is the same object until its folder changes', async () => {
    const before = await drive.files.list(at('/Docs'));
    const root = await drive.files.list(ROOT);
    expect(await drive.files.list(at('/Docs'))).toBe(before);
    await drive.write(at('/Docs/a.txt'), 'other');
    const after = await drive.files.list(at('/Docs'));
    expect(after).not.toBe(before);
    expect(before.children.map(({ name }) => name)).toEqual(['a.txt', 'b.txt']);
    expect(await drive.files.list(at('/Docs'))).toBe(after);
    expect(await drive.files.list(ROOT)).toBe(root);
  });

  test('fifty writes into a listed folder build its list of children once, at the next listing', async () => {
    await drive.files.list(at('/Docs'));
    const built = vi.spyOn(CachedFolder.prototype, 'entries');
    for (let index = 0; index < 50; index++) await drive.write(at(`/Docs/new ${index}`), `${index}`);
    expect(built).not.toHaveBeenCalled();
    expect((await drive.files.list(at('/Docs'))).children).toHaveLength(52);
    expect(built).toHaveBeenCalledTimes(1);
    built.mockRestore();
  });

  test('the tree cache stays within its limit and fetches dropped folders again', async () => {
    await drive.close();
    drive = await MemoryDrive.open(remote, { metadataBytesMax: 20_000 });
    for (let index = 0; index < 100; index++) remote.putFile(at(`/f${index}/x`), 'x');
    await turn(10);
    for (let index = 0; index < 100; index++) expect(await drive.names(at(`/f${index}`))).toEqual(['x']);
    expect(drive.files.status().metadataBytes).toBeLessThanOrEqual(20_000);
    expect((await drive.files.list(ROOT)).children).toHaveLength(101);
  });
});
