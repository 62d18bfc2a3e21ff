import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService } from '../support/service.ts';

const WRITES = 36;
/** Returns the content of a file. Every sixth is too large for the database and gets a body file. */
const contentOf = (index: number) => pseudoRandomBytes(index % 6 === 0 ? 300_000 + index : 2_000, index);

test('a start after the damaged journal database was moved away puts every body file of the journal into lost and found', async () => {
  const [service, data] = await Promise.all([startTestService(), temporaryDirectory()]);
  onTestFinished(async () => {
    await service.close();
    await data.remove();
  });
  service.service.setFaults({ 'error-write-share': 1 });
  const args = ['--write-mode', 'back', '--api-url', service.url, '--token', service.token];
  const start = () => startProgram({ dataDirectory: data.path, args });
  const first = await start();
  for (let index = 0; index < WRITES; index++) expect(await put(first, index)).toBe(201);
  await first.kill();

  const journal = join(data.path, 'journal');
  const damaged = pseudoRandomBytes(4096, 99);
  writeFileSync(join(journal, 'state.db'), Buffer.concat([damaged, readFileSync(join(journal, 'state.db'))]));
  const walBytes = readFileSync(join(journal, 'state.db-wal'));
  const options = ['--listen', '127.0.0.1:0', '--data-dir', data.path, '--no-auth', ...args];
  const refused = await runProgram(['serve', ...options, '--cache-dir', join(data.path, 'cache')]);
  expect([refused.code, refused.output]).toEqual([2, expect.stringContaining('keep it')]);
  expect(readdirSync(join(journal, 'bodies', 'default'))).toHaveLength(WRITES / 6);
  // SQLite may have moved the log's writes into the damaged database, which keeps them as well.
  const moved = join(data.path, 'moved');
  mkdirSync(moved);
  renameSync(join(journal, 'state.db'), join(moved, 'state.db'));
  const hasLog = readdirSync(journal).includes('state.db-wal');

  const second = await start();
  onTestFinished(() => second.kill());
  const lost = join(data.path, 'lost-and-found', 'default');
  const names = readdirSync(lost).filter((name) => !name.endsWith('.reason.txt'));
  expect(names.map((name) => name.split('-').at(-1)).sort()).toEqual(
    [0, 12, 18, 24, 30, 6].map((index) => `file ${index}`),
  );
  for (const name of names) {
    const index = Number(name.split(' ').at(-1));
    expect(readFileSync(join(lost, name)).equals(contentOf(index)), name).toBe(true);
  }
  expect(second.output()).toContain('their bytes are in the lost-and-found folder');
  const health = await fetch(`${second.url}.davgate/healthz`);
  expect(await health.json()).toMatchObject({ lostFiles: WRITES / 6 });
  if (!hasLog) return;
  const [kept = ''] = readdirSync(journal).filter((name) => name.startsWith('state.db-wal.kept-'));
  expect(readFileSync(join(journal, kept)).equals(walBytes)).toBe(true);
});

async function put(program: Program, index: number): Promise<number> {
  const { url, authorization } = program;
  const body = new Uint8Array(contentOf(index));
  const answer = await fetch(`${url}file%20${index}`, { method: 'PUT', headers: { authorization }, body });
  return answer.status;
}
