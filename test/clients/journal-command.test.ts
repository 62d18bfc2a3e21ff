import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';

const BYTES = pseudoRandomBytes(200_000, 1);

let data: { readonly path: string; remove(): Promise<void> };
let service: TestService;
let args: readonly string[];
let program: Program;

const journal = (...words: string[]) => runProgram(['journal', ...words, '--data-dir', data.path]);

async function ask(method: string, name: string, body?: Buffer | string): Promise<Response> {
  const init = { method, headers: { authorization: program.authorization } };
  return fetch(
    `${program.url}${name}`,
    body === undefined ? init : { ...init, body: new Uint8Array(Buffer.from(body)) },
  );
}

async function put(name: string, body: Buffer | string): Promise<void> {
  expect([201, 204]).toContain((await ask('PUT', name, body)).status);
}

/** Returns the id that `davgate journal` lists for the write to `path`. */
async function idOf(path: string): Promise<string> {
  const { output } = await journal();
  return (
    new RegExp(`^(?:waiting|lost) +(\\S+) .* ${path}(?: |$)`, 'm').exec(output)?.[1] ??
    `no ${path} in ${output}`
  );
}

/** Makes a lost write: damages its bytes in the journal and restarts davgate. Returns the damaged bytes. */
async function makeLostWrite(): Promise<Buffer> {
  service.service.setFaults({ 'error-write-share': 1 });
  await put('lost.txt', BYTES);
  await program.kill();
  const folder = join(data.path, 'journal', 'bodies', 'default');
  const [file = ''] = await readdir(folder);
  const damaged = Buffer.from(BYTES).fill(0, 0, 10);
  await writeFile(join(folder, file), damaged);
  service.service.setFaults({});
  program = await startProgram({ dataDirectory: data.path, args });
  await eventually(async () => expect((await journal()).output).toMatch(/^lost .*damaged in the journal/m));
  return damaged;
}

describe('davgate journal', () => {
  beforeEach(async () => {
    [data, service] = await Promise.all([temporaryDirectory(), startTestService()]);
    args = ['--write-mode', 'back', '--api-url', service.url, '--token', service.token];
    program = await startProgram({ dataDirectory: data.path, args });
  });

  afterEach(async () => {
    await program.kill();
    await service.close();
    await data.remove();
  });

  test('davgate journal lists, exports, discards and retries pending writes while davgate runs', async () => {
    expect(await journal()).toEqual({ code: 0, output: 'No pending writes and no lost writes.\n' });
    service.service.setFaults({ 'error-write-share': 1 });
    await put('plan.odt', BYTES);
    await put('other.txt', 'other');
    const listed = await journal();
    expect(listed.code).toBe(0);
    expect(listed.output).toMatch(/^waiting +[0-9a-f]{8} +\d{4}-\d\d-\d\dT\S+Z +200000 +\/plan\.odt /m);
    const target = join(data.path, 'saved.odt');
    const exported = await journal('export', await idOf('/plan.odt'), target);
    expect([exported.code, exported.output]).toEqual([0, `200000 bytes of /plan.odt are in ${target}.\n`]);
    expect((await readFile(target)).equals(BYTES)).toBe(true);
    expect((await journal('export', await idOf('/plan.odt'), target)).code).toBe(1);
    const discarded = await journal('discard', await idOf('/plan.odt'));
    expect(discarded).toEqual({ code: 0, output: '/plan.odt was deleted.\n' });
    expect((await journal()).output).not.toContain('/plan.odt');
    expect((await ask('GET', 'plan.odt')).status).not.toBe(200);
    expect((await ask('GET', 'other.txt')).status).toBe(200);
    const id = await idOf('/other.txt');
    const failed = await journal('retry', id);
    expect([failed.code, failed.output]).toEqual([
      1,
      expect.stringContaining('/other.txt: the storage service'),
    ]);
    service.service.setFaults({});
    // davgate may send the write by itself before the command, which then finds nothing.
    await eventually(async () => {
      await journal('retry', id);
      expect((await journal()).output).toBe('No pending writes and no lost writes.\n');
    });
    expect(await (await ask('GET', 'other.txt')).text()).toBe('other');
  });

  test('davgate journal exports and discards pending writes while davgate is stopped, and leaves retry to the next start', async () => {
    service.service.setFaults({ 'error-write-share': 1 });
    await put('plan.odt', BYTES);
    await put('other.txt', 'other');
    await program.kill();
    const target = join(data.path, 'saved.odt');
    expect((await journal('export', await idOf('/plan.odt'), target)).code).toBe(0);
    expect((await readFile(target)).equals(BYTES)).toBe(true);
    const retried = await journal('retry', await idOf('/plan.odt'));
    expect([retried.code, retried.output]).toEqual([1, expect.stringContaining('sent at the next start')]);
    expect((await journal('discard', await idOf('/plan.odt'))).code).toBe(0);
    const { output } = await journal();
    expect([output.includes('/plan.odt'), output.includes('/other.txt')]).toEqual([false, true]);
  });

  test('davgate journal retry puts a lost write back at its path, unless a file is there now', async () => {
    const damaged = await makeLostWrite();
    const id = await idOf('/lost.txt');
    await put('lost.txt', 'newer');
    const refused = await journal('retry', id);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('/lost.txt exists again')]);
    expect((await ask('DELETE', 'lost.txt')).status).toBe(204);
    const retried = await journal('retry', id);
    expect(retried).toEqual({ code: 0, output: '/lost.txt is pending again and no longer lost.\n' });
    const found = Buffer.from(await (await ask('GET', 'lost.txt')).arrayBuffer());
    expect(found.equals(damaged)).toBe(true);
    await eventually(async () => expect((await journal()).output).toMatch(/^No pending writes/));
  });

  test('davgate journal retry makes a lost write pending while davgate is stopped, and the next start sends it', async () => {
    const damaged = await makeLostWrite();
    await program.kill();
    const id = await idOf('/lost.txt');
    expect((await journal('retry', id)).code).toBe(0);
    expect((await journal()).output).toMatch(/^waiting .* \/lost\.txt /m);
    program = await startProgram({ dataDirectory: data.path, args });
    await eventually(async () => expect((await journal()).output).toMatch(/^No pending writes/));
    const found = Buffer.from(await (await ask('GET', 'lost.txt')).arrayBuffer());
    expect(found.equals(damaged)).toBe(true);
  });

  test('davgate journal retry, discard and export with an unknown id end with exit code 1', async () => {
    for (const words of [
      ['retry', 'ffffffff'],
      ['discard', 'ffffffff'],
      ['export', 'ffffffff', join(data.path, 'x')],
    ]) {
      const { code, output } = await journal(...words);
      expect([words, code, output]).toEqual([
        words,
        1,
        expect.stringContaining('davgate journal lists them'),
      ]);
    }
  });
});

test.each([
  [['export'], /^davgate: journal export: ID is missing/],
  [['export', '1a2b3c4d'], /^davgate: journal export: FILE is missing/],
  [['retry', '--data-dir', 'x'], /^davgate: journal retry: ID is missing/],
  [['mend'], /^davgate: journal mend: no such command/],
])('davgate journal %j ends with exit code 2 and says what is wrong', async (words, message) => {
  const { code, output } = await runProgram(['journal', ...words]);
  expect([code, output]).toEqual([2, expect.stringMatching(message)]);
});
