import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
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

/** Writes a configuration whose drives are for ann, bob and eve in this order; returns davgate's arguments. */
async function argumentsFor(drives: Drives): Promise<string[]> {
  const file = join(home.path, 'davgate.json');
  const names = Object.keys(drives);
  const users = ['ann', 'bob', 'eve'].flatMap((name, index) => {
    const drive = names[index];
    return drive === undefined ? [] : [{ name, 'password-hash': cheapHash(`${name}s word`), drive }];
  });
  await writeFile(file, JSON.stringify({ drives, users }));
  const directories = ['--data-dir', join(home.path, 'data'), '--cache-dir', join(home.path, 'cache')];
  return ['--config', file, '--listen', '127.0.0.1:0', ...directories];
}

/** Starts davgate with the drives. `ask` sends a user's PUT of `body`, or a GET. */
async function serve(drives: Drives) {
  const { child, output } = spawnProgram(await argumentsFor(drives));
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

// These tests go on with the data directory of the one before them.
test('the files of the only embedded drive stay in it when a second drive is configured, and each drive has its own', async () => {
  const alone = await serve({ home: {} });
  expect((await alone.ask('ann', 'x', 'of ann')).status).toBe(201);
  await alone.stop();
  const grown = await serve({ home: {}, new: {} });
  expect(await (await grown.ask('ann', 'x')).text()).toBe('of ann');
  expect((await grown.ask('bob', 'x')).status).toBe(404);
  expect((await grown.ask('bob', 'y', 'of bob')).status).toBe(201);
  expect((await grown.ask('ann', 'y')).status).toBe(404);
});

test('a new name for an embedded drive ends the start', async () => {
  const { code, output } = await runProgram(await argumentsFor({ house: {} }));
  expect([code, output]).toEqual([2, expect.stringMatching(/^davgate: drive "house" is new, .*\n$/)]);
});

test('the setting "account" keeps the files of a renamed drive, a second drive shows them from its own root, and others keep theirs', async () => {
  const account = 'drive@davgate.invalid';
  const renamed = await serve({ house: { account }, new: {}, part: { account, root: '/Team' } });
  expect(await (await renamed.ask('ann', 'x')).text()).toBe('of ann');
  expect((await renamed.ask('eve', 'plan', 'of the team')).status).toBe(201);
  expect(await (await renamed.ask('ann', 'Team/plan')).text()).toBe('of the team');
  expect(await (await renamed.ask('bob', 'y')).text()).toBe('of bob');
  expect((await renamed.ask('bob', 'x')).status).toBe(404);
  expect((await renamed.ask('ann', 'y')).status).toBe(404);
});

test('an account that the embedded service does not have ends the start with exit code 2 and the command to make it', async () => {
  const args = await argumentsFor({ a: { account: 'nobody@example.org' } });
  const { code, output } = await runProgram(args);
  expect(code).toBe(2);
  expect(output).toMatch(/^davgate: drive "a": \S+ has no account nobody@example\.org; .*account create/);
});
