import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

// What a drive does with a large AppleDouble file: `--local-files`.

const LARGE = Buffer.alloc(17 * 2 ** 20, 'x');

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program | undefined;

beforeEach(async () => {
  data = await temporaryDirectory();
});
afterEach(async () => {
  await program?.kill();
  await data.remove();
});

test.each([
  ['keep refuses it and keeps a small one', ['--local-files', 'keep'], 413, ['._small']],
  ['drop accepts it, does not have it, and keeps a small one', ['--local-files', 'drop'], 201, ['._small']],
  ['send stores it as any other file', ['--local-files', 'send'], 201, ['._large', '._small']],
  ['without the setting it is refused, and a small one is kept', [], 413, ['._small']],
])('a large `._` file: %s', async (_, args, status, shown) => {
  program = await startProgram({ dataDirectory: join(data.path, 'data'), args });
  const { url, authorization } = program;
  const send = (method: string, name: string, body?: Buffer) =>
    fetch(url + name, { method, headers: { authorization }, ...(body && { body }) });
  expect((await send('PUT', '._small', Buffer.from('small'))).status).toBe(201);
  expect((await send('PUT', '._large', LARGE)).status).toBe(status);
  const listing = await (await send('PROPFIND', '')).text();
  expect([...listing.matchAll(/<D:href>\/(\._\w+)</g)].map(([, name]) => name).sort()).toEqual(shown);
  const answer = await send('GET', '._large');
  const isThere = shown.includes('._large');
  expect(answer.status).toBe(isThere ? 200 : 404);
  if (isThere) expect(LARGE.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
});
