import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mountDavfs } from '../support/davfs.ts';
import { cheapHash, type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';

// A user who may only read mounts a drive that another user writes to.

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;
let reader: { readonly url: string; readonly user: string; readonly password: string };

beforeAll(async () => {
  data = await temporaryDirectory();
  const config = join(data.path, 'davgate.json');
  const drive = 'shared';
  await writeFile(
    config,
    JSON.stringify({
      drives: { [drive]: {} },
      users: [
        { name: 'tester', 'password-hash': cheapHash('pass word:1'), drive },
        { name: 'reader', 'password-hash': cheapHash('p'), drive, 'read-only': true },
      ],
    }),
  );
  program = await startProgram({
    dataDirectory: join(data.path, 'data'),
    login: 'configured',
    args: ['--config', config],
  });
  reader = { url: program.url, user: 'reader', password: 'p' };
  const { authorization } = program;
  for (const [method, path, body] of [
    ['MKCOL', 'folder', null],
    ['PUT', 'folder/file', 'content'],
  ] as const)
    expect((await fetch(program.url + path, { method, body, headers: { authorization } })).status).toBe(201);
});
afterAll(async () => {
  await program?.stop();
  await data.remove();
});

/** Returns what each change of a mounted drive fails with. */
async function failuresOfChanges(at: string): Promise<readonly unknown[]> {
  const changes = [
    () => writeFile(join(at, 'folder/new'), 'other'),
    () => writeFile(join(at, 'folder/file'), 'other'),
    () => mkdir(join(at, 'folder/sub')),
    () => rename(join(at, 'folder/file'), join(at, 'folder/renamed')),
    () => rm(join(at, 'folder/file')),
  ];
  const codes: unknown[] = [];
  for (const change of changes)
    codes.push(
      await change().then(
        () => 'done',
        (error: NodeJS.ErrnoException) => error.code,
      ),
    );
  return codes;
}

test('davfs2 reads as a read-only user, and each change fails at once with “Permission denied”', async () => {
  const mount = await mountDavfs(reader);
  try {
    expect(await readFile(join(mount.path, 'folder/file'), 'utf8')).toBe('content');
    // davfs2 has one error for all failures of a rename.
    expect(await failuresOfChanges(mount.path)).toEqual(['EACCES', 'EACCES', 'EACCES', 'EIO', 'EACCES']);
  } finally {
    await mount.unmount();
  }
  expect(await contentForWriter()).toBe('content');
});

test('rclone reads as a read-only user, and shows davgate’s message when a change fails', async () => {
  const rclone = await configureRclone(reader);
  try {
    expect((await rclone.run('cat', 'drive:folder/file')).stdout).toBe('content');
    const sentence = /read-only: you may read \/folder.*, but not change it/;
    await expect(rclone.pipe('other', 'rcat', 'drive:folder/new')).rejects.toThrow(sentence);
    await expect(rclone.run('deletefile', 'drive:folder/file')).rejects.toThrow(sentence);
    await expect(rclone.run('mkdir', 'drive:folder/sub')).rejects.toThrow(sentence);
  } finally {
    await rclone.remove();
  }
  expect(await contentForWriter()).toBe('content');
});

async function contentForWriter(): Promise<string> {
  const answer = await fetch(`${program.url}folder/file`, {
    headers: { authorization: program.authorization },
  });
  return answer.text();
}
