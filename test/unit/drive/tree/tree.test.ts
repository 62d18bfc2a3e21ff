import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiError } from '../../../../src/api/errors.ts';
import { ROOT } from '../../../../src/util/path.ts';
import { bodyOf, MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at } from '../../../support/memory-remote.ts';
import { REFUSED_NAME } from '../../../support/odd-names.ts';

let drive: MemoryDrive;

beforeEach(async () => {
  drive = await MemoryDrive.open();
});

afterEach(() => drive.close());

describe('a drive', () => {
  test('a written file is visible at once in any letter case, without a call', async () => {
    const { remote, files } = drive;
    await files.createFolder(at('/Docs'));
    const { entry, created } = await drive.write(at('/docs/a.txt'), 'one');
    expect(created).toBe(true);
    expect(entry.path).toBe('/Docs/a.txt');
    const before = remote.questions;
    expect(await files.stat(at('/Docs/A.TXT'))).toEqual(entry);
    expect(await drive.names(at('/docs'))).toEqual(['a.txt']);
    expect(remote.questions).toBe(before);
    expect(await drive.text(at('/Docs/a.txt'))).toBe('one');
    expect(await drive.write(at('/Docs/a.txt'), 'two')).toMatchObject({ created: false });
    expect(await drive.text(at('/Docs/a.txt'))).toBe('two');
  });

  test('a removed file is gone at once, here and at the service', async () => {
    await drive.write(at('/a.txt'), 'one');
    expect(await drive.names(ROOT)).toEqual(['a.txt']);
    await drive.files.remove(at('/a.txt'), { recoverable: false });
    expect(await drive.files.stat(at('/a.txt'))).toBeUndefined();
    expect(await drive.names(ROOT)).toEqual([]);
    expect(drive.remote.paths).toEqual([]);
  });

  test('a name that the service refuses leaves its folder readable', async () => {
    const { files, remote } = drive;
    await drive.write(at('/a.txt'), 'one');
    expect(await drive.names(ROOT)).toEqual(['a.txt']);
    const refused = at(`/${REFUSED_NAME}`);
    // The service refuses a stat of such a name too.
    const stat = remote.stat.bind(remote);
    remote.stat = async (path, signal) => {
      if (path === refused) throw new ApiError('malformed-path', path);
      return stat(path, signal);
    };
    await expect(drive.write(refused, 'two')).rejects.toMatchObject({ fault: 'bad-name' });
    await expect(files.createFolder(refused)).rejects.toMatchObject({ fault: 'bad-name' });
    expect(await drive.names(ROOT)).toEqual(['a.txt']);
    expect(await files.stat(refused)).toBeUndefined();
  });

  test('a MOVE onto a file replaces it and puts the old file into the trash', async () => {
    await drive.write(at('/new.txt'), 'new');
    await drive.write(at('/old.txt'), 'old');
    const { created } = await drive.files.move(at('/new.txt'), at('/old.txt'), { overwrite: true });
    expect(created).toBe(false);
    expect(drive.remote.paths).toEqual(['/old.txt']);
    expect(await drive.text(at('/old.txt'))).toBe('new');
    expect(drive.remote.trash).toHaveLength(1);
    expect(await drive.names(ROOT)).toEqual(['old.txt']);
  });

  test('an empty file is listed at once and costs one commit together with its body', async () => {
    const options = { mode: { if: 'any' }, sizeBytes: 0 } as const;
    const placeholder = await drive.files.write(at('/new.doc'), bodyOf(), options);
    expect(placeholder.created).toBe(true);
    expect(await drive.names(ROOT)).toEqual(['new.doc']);
    expect(drive.remote.paths).toEqual([]);
    expect(await drive.write(at('/new.doc'), 'body')).toMatchObject({ created: false });
    expect(drive.remote.count('write')).toBe(1);
    expect(await drive.text(at('/new.doc'))).toBe('body');
    expect(await drive.names(ROOT)).toEqual(['new.doc']);
  });

  test('an empty file without a body is committed after five seconds', async () => {
    await drive.files.write(at('/empty'), bodyOf(), { mode: { if: 'any' } });
    await drive.clock.advance(5_000);
    while (drive.files.status().placeholders > 0) await turn();
    expect(drive.remote.paths).toEqual(['/empty']);
    expect(await drive.names(ROOT)).toEqual(['empty']);
  });
});
