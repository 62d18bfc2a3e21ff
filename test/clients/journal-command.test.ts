import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { expectSoon } from '../support/eventually.ts';
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

/** Returns the id of the write to `path` in the output of `davgate journal`. */
function idIn(output: string, path: string): string {
  const row = new RegExp(`^(?:waiting|lost) +(\\S+) .* ${path}(?: |$)`, 'm').exec(output);
  return row?.[1] ?? `no ${path} in ${output}`;
}

/** Returns the number of lost writes that davgate counts, once no write is pending. */
async function lostFiles(): Promise<number> {
  const health = async () =>
    (await (await ask('GET', '.davgate/healthz')).json()) as { journalFiles: number; lostFiles: number };
  await expectSoon(async () => (await health()).journalFiles).toBe(0);
  return (await health()).lostFiles;
}

const DAMAGED = Buffer.from(BYTES).fill(0, 0, 10);

/** Damages the bytes of the only pending write, which makes it a lost one at the start. */
async function damage(): Promise<void> {
  const folder = join(data.path, 'journal', 'bodies', 'default');
  const [file = '', ...more] = await readdir(folder);
  expect(more).toEqual([]);
  await writeFile(join(folder, file), DAMAGED);
}

// Each test begins with an empty journal, which the one before it leaves.
describe('davgate journal', () => {
  beforeAll(async () => {
    [data, service] = await Promise.all([temporaryDirectory(), startTestService()]);
    args = ['--write-mode', 'back', '--api-url', service.url, '--token', service.token];
    program = await startProgram({ dataDirectory: data.path, args });
  });

  afterAll(async () => {
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
    const plan = idIn(listed.output, '/plan.odt');
    const target = join(data.path, 'saved.odt');
    const exported = await journal('export', plan, target);
    expect([exported.code, exported.output]).toEqual([0, `200000 bytes of /plan.odt are in ${target}.\n`]);
    expect((await readFile(target)).equals(BYTES)).toBe(true);
    expect((await journal('export', plan, target)).code).toBe(1);
    const discarded = await journal('discard', plan);
    expect(discarded).toEqual({ code: 0, output: '/plan.odt was deleted.\n' });
    expect((await journal()).output).not.toContain('/plan.odt');
    expect((await ask('GET', 'plan.odt')).status).not.toBe(200);
    expect((await ask('GET', 'other.txt')).status).toBe(200);
    const id = idIn(listed.output, '/other.txt');
    const failed = await journal('retry', id);
    expect([failed.code, failed.output]).toEqual([
      1,
      expect.stringContaining('/other.txt: the storage service'),
    ]);
    service.service.setFaults({});
    // davgate may send the write by itself before the command, which then finds nothing.
    await journal('retry', id);
    expect(await lostFiles()).toBe(0);
    expect((await journal()).output).toBe('No pending writes and no lost writes.\n');
    expect(await (await ask('GET', 'other.txt')).text()).toBe('other');
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

  test('davgate journal exports and discards pending writes while davgate is stopped, and leaves retry to the next start', async () => {
    service.service.setFaults({ 'error-write-share': 1 });
    await put('plan.odt', BYTES);
    await put('lost.txt', BYTES);
    await program.kill();
    const { output } = await journal();
    const plan = idIn(output, '/plan.odt');
    const target = join(data.path, 'saved while stopped.odt');
    expect((await journal('export', plan, target)).code).toBe(0);
    expect((await readFile(target)).equals(BYTES)).toBe(true);
    const retried = await journal('retry', plan);
    expect([retried.code, retried.output]).toEqual([1, expect.stringContaining('sent at the next start')]);
    expect((await journal('discard', plan)).code).toBe(0);
    const { output: left } = await journal();
    expect([left.includes('/plan.odt'), left.includes('/lost.txt')]).toEqual([false, true]);
  });

  test('davgate journal retry puts a lost write back at its path, unless a file is there now', async () => {
    await damage();
    service.service.setFaults({});
    program = await startProgram({ dataDirectory: data.path, args });
    expect(await lostFiles()).toBe(1);
    const { output } = await journal();
    expect(output).toMatch(/^lost .*damaged in the journal/m);
    const id = idIn(output, '/lost.txt');
    await put('lost.txt', 'newer');
    const refused = await journal('retry', id);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('/lost.txt exists again')]);
    expect((await ask('DELETE', 'lost.txt')).status).toBe(204);
    const retried = await journal('retry', id);
    expect(retried).toEqual({ code: 0, output: '/lost.txt is pending again and no longer lost.\n' });
    const found = Buffer.from(await (await ask('GET', 'lost.txt')).arrayBuffer());
    expect(found.equals(DAMAGED)).toBe(true);
    expect(await lostFiles()).toBe(0);
  });

  test('davgate journal retry makes a lost write pending while davgate is stopped, and the next start sends it', async () => {
    service.service.setFaults({ 'error-write-share': 1 });
    await put('late.txt', BYTES);
    await program.kill();
    await damage();
    program = await startProgram({ dataDirectory: data.path, args });
    expect(await lostFiles()).toBe(1);
    service.service.setFaults({});
    await program.kill();
    const id = idIn((await journal()).output, '/late.txt');
    expect((await journal('retry', id)).code).toBe(0);
    expect((await journal()).output).toMatch(/^waiting .* \/late\.txt /m);
    program = await startProgram({ dataDirectory: data.path, args });
    expect(await lostFiles()).toBe(0);
    expect((await journal()).output).toMatch(/^No pending writes/);
    const found = Buffer.from(await (await ask('GET', 'late.txt')).arrayBuffer());
    expect(found.equals(DAMAGED)).toBe(true);
  });
});

// test/unit/cli/program.test.ts tests the other wrong usages without a process for each.
test('davgate journal export without a file ends with exit code 2 and says what is wrong', async () => {
  const { code, output } = await runProgram(['journal', 'export', '1a2b3c4d']);
  expect([code, output]).toEqual([2, expect.stringMatching(/^davgate: journal export: FILE is missing/)]);
});
