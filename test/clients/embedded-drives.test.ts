import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { cheapHash, matchOutput, runProgram, spawnProgram, temporaryDirectory } from '../support/program.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  home = await temporaryDirectory();
});
afterAll(() => home.remove());

const running: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const program of running.splice(0)) await program.stop();
});

type Drives = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Writes a configuration with the first drive for ann and the second for bob; returns davgate's arguments. */
async function argumentsFor(directory: string, drives: Drives): Promise<string[]> {
  const data = join(home.path, directory);
  await mkdir(data, { recursive: true });
  const file = join(data, 'davgate.json');
  const names = Object.keys(drives);
  const users = ['ann', 'bob'].flatMap((name, index) => {
    const drive = names[index];
    return drive === undefined ? [] : [{ name, 'password-hash': cheapHash(`${name}s word`), drive }];
  });
  await writeFile(file, JSON.stringify({ drives, users }));
  const directories = ['--data-dir', join(data, 'data'), '--cache-dir', join(data, 'cache')];
  return ['--config', file, '--listen', '127.0.0.1:0', ...directories];
}

/** Starts davgate with the drives. `ask` sends a user's PUT of `body`, or a GET. */
async function serve(directory: string, drives: Drives) {
  const { child, output } = spawnProgram(await argumentsFor(directory, drives));
  const url = await matchOutput(child, output, /http:\/\/127\.0\.0\.1:\d+\//);
  const stop = async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'close');
  };
  running.push({ stop });
  const ask = (user: string, path: string, body?: string) =>
    fetch(`${url}${path}`, {
      ...(body !== undefined && { method: 'PUT', body }),
      headers: { authorization: `Basic ${Buffer.from(`${user}:${user}s word`).toString('base64')}` },
    });
  return { ask, stop };
}

test('a file put into one embedded drive is not in another, before and after a restart', async () => {
  const first = await serve('two', { a: {}, b: {} });
  expect((await first.ask('ann', 'x', 'of ann')).status).toBe(201);
  expect((await first.ask('bob', 'x')).status).toBe(404);
  await first.stop();
  const again = await serve('two', { a: {}, b: {} });
  expect(await (await again.ask('ann', 'x')).text()).toBe('of ann');
  expect((await again.ask('bob', 'x')).status).toBe(404);
});

test('the files of the only embedded drive stay in it when a second drive is configured', async () => {
  const alone = await serve('grown', { home: {} });
  expect((await alone.ask('ann', 'x', 'of ann')).status).toBe(201);
  await alone.stop();
  const grown = await serve('grown', { home: {}, new: {} });
  expect(await (await grown.ask('ann', 'x')).text()).toBe('of ann');
  expect((await grown.ask('bob', 'x')).status).toBe(404);
});

test('a new name for the only embedded drive ends the start, and the setting "account" keeps its files', async () => {
  const alone = await serve('renamed', { home: {} });
  expect((await alone.ask('ann', 'x', 'of ann')).status).toBe(201);
  await alone.stop();
  const { code, output } = await runProgram(await argumentsFor('renamed', { house: {} }));
  expect([code, output]).toEqual([2, expect.stringMatching(/^davgate: drive "house" is new, .*\n$/)]);
  const renamed = await serve('renamed', { house: { account: 'drive@davgate.invalid' } });
  expect(await (await renamed.ask('ann', 'x')).text()).toBe('of ann');
});

test('two embedded drives with one account show the same files, each from its own root', async () => {
  const account = 'drive@davgate.invalid';
  const shared = await serve('shared', { all: { account }, part: { account, root: '/Team' } });
  expect((await shared.ask('bob', 'plan', 'of the team')).status).toBe(201);
  expect(await (await shared.ask('ann', 'Team/plan')).text()).toBe('of the team');
});

test('an account that the embedded service does not have ends the start with exit code 2 and the command to make it', async () => {
  const args = await argumentsFor('unknown', { a: { account: 'nobody@example.org' } });
  const { code, output } = await runProgram(args);
  expect(code).toBe(2);
  expect(output).toMatch(/^davgate: drive "a": \S+ has no account nobody@example\.org; .*account create/);
});
