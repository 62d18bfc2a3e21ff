import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { newFolder } from '../support/copied-places.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { PASSWORD } from '../support/postgres-server.ts';
import { runProgram, spawnProgram, startServiceProgram } from '../support/program.ts';
import { startTestService } from '../support/service.ts';
import { type Callable, download, put, rpc, storedPaths } from '../support/service-client.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const FILES = 30;

/** Copies that are killed before one may end. */
const KILLS = 5;

/** The longest time until a copy is killed, in ms: about as long as one takes. */
const KILL_MS = 3000;

const environment = { ...process.env, PGPASSWORD: PASSWORD };

const contentOf = (file: number) => pseudoRandomBytes(60_000 + file * 1000, file);

/** Makes a service with files in rows, files in blocks and a deleted file. Returns its token. */
async function newService(dataDirectory: string): Promise<string> {
  const service = await startTestService({ dataDirectory });
  for (let file = 0; file < FILES; file++) await put(service, `/f${file}`, contentOf(file));
  await rpc(service, 'files/delete_v2', { path: '/f0' });
  await service.close();
  return service.token;
}

/** Returns the address of an empty database, without its password. */
async function newDatabase(): Promise<string> {
  const url = new URL(await postgres.newDatabase());
  url.password = '';
  return url.href;
}

/** Kills copies at random moments, and then lets one end. Calls `whenKilled` after each. */
async function copyWithKills(args: readonly string[], whenKilled: () => Promise<void>): Promise<string> {
  for (let kill = 0; kill < KILLS; kill++) {
    const { child } = spawnProgram(['service', 'copy', ...args], environment);
    const closed = once(child, 'close');
    await pause(Math.random() * KILL_MS);
    child.kill('SIGKILL');
    await closed;
    await whenKilled();
  }
  const { code, output } = await runProgram(['service', 'copy', ...args], environment);
  expect([code, output]).toEqual([0, expect.stringMatching(/ rows are equal on both sides\.$/m)]);
  return output;
}

async function expectWhole(service: Callable): Promise<void> {
  expect(await storedPaths(service)).toHaveLength(FILES - 1);
  for (let file = 1; file < FILES; file++) {
    const { text } = await download(service, `/f${file}`);
    expect(text === contentOf(file).toString()).toBe(true);
  }
}

test('davgate service copy that is killed at random moments goes on to PostgreSQL and back, and the service refuses what is unfinished', async () => {
  const [from, blocks, to] = [await newFolder(), await newFolder(), join(await newFolder(), 'back')];
  const token = await newService(from);
  const database = await newDatabase();
  const there = ['--to', database, '--to-blocks', blocks];
  await copyWithKills(['--from', from, ...there], async () => undefined);
  const withPassword = new URL(database);
  withPassword.password = PASSWORD;
  const stores = ['--metadata', withPassword.href, '--blocks', blocks];
  const shared = await startServiceProgram(await newFolder(), ...stores);
  onTestFinished(() => shared.kill());
  await expectWhole({ url: shared.url, token });
  const whileRunning = await runProgram(['service', 'copy', '--from', from, ...there], environment);
  expect([whileRunning.code, whileRunning.output]).toEqual([
    2,
    expect.stringContaining('a service that runs'),
  ]);
  await shared.stop();

  await copyWithKills(['--from', database, '--from-blocks', blocks, '--to', to], async () => {
    if (!existsSync(join(to, 'unfinished-copy.json'))) return;
    const { code, output } = await runProgram(['service', '--listen', '127.0.0.1:0', '--data', to]);
    expect([code, output]).toEqual([2, expect.stringContaining('has an unfinished copy of a service')]);
  });
  const back = await startServiceProgram(to);
  onTestFinished(() => back.kill());
  await expectWhole({ url: back.url, token });
  await back.stop();
  const check = await runProgram(['service', 'check', '--data', to]);
  expect([check.code, check.output]).toEqual([0, expect.stringContaining('No damage')]);
});

test('davgate service copy without a place, and with blocks that do not fit to it, says what to give', async () => {
  const copy = async (...args: readonly string[]) => {
    const { code, output } = await runProgram(['service', 'copy', ...args], environment);
    expect(code).toBe(2);
    return output;
  };
  expect(await copy()).toContain('--from: name a data directory, or a database');
  expect(await copy('--from', '/nowhere', '--to', 'postgres://davgate@localhost/none')).toContain(
    '--to-blocks: a service in PostgreSQL has its blocks elsewhere',
  );
  expect(await copy('--from', '/nowhere', '--from-blocks', '/blocks', '--to', '/there')).toContain(
    '--from-blocks: the blocks of a data directory are in it or in a bucket',
  );
});
