import { expect, test } from 'vitest';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ANY, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests the search by names. */
export function searchContract(drive: RemoteUnderTest): void {
  test('search finds files and folders at any depth by the words of their names, in any letter case', async () => {
    const { remote } = drive;
    const folder = await drive.newFolder();
    const file = await remote.write(path(`${folder}/deep/Sought minutes.txt`), bodyOf('x'), ANY);
    const made = await remote.createFolder(path(`${folder}/sought`));
    await remote.write(path(`${folder}/Other minutes.txt`), bodyOf('x'), ANY);
    const found = async (query: string) => {
      const { entries, cursor } = await remote.search(query, undefined);
      expect(cursor).toBeUndefined();
      return entries.map((entry) => entry.path).sort();
    };
    expect(await found('SOUGHT')).toEqual([file.path, made.path]);
    expect(await found('minutes sought')).toEqual([file.path]);
    expect(await found('nothing has this name')).toEqual([]);
    expect((await remote.search('sought minutes', undefined)).entries).toEqual([file]);
  });
}
