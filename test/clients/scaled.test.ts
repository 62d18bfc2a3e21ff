import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command } from '../support/command.ts';
import { combinations, effort } from '../support/effort.ts';
import { eventually, expectSoon } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { passLitmus, SUITES } from '../support/litmus.ts';
import { matchOutput, temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';

// docs/deploy/scaled/try.sh: haproxy, two gateways, Redis, two service nodes, PostgreSQL with a standby.

const SCRIPT = join(PROJECT_ROOT, 'docs/deploy/scaled/try.sh');
const PEOPLE = Array.from({ length: 8 }, (_, index) => `person-${index + 1}`);
const PROGRAMS = [
  ...['gateway-1', 'gateway-2', 'haproxy', 'node-1', 'node-2'],
  ...['postgresql-1', 'postgresql-2', 'redis'],
];

/** Number of ports that the script takes, from the given one on. */
const PORTS = 9;

interface Tried {
  readonly url: string;
  readonly gateways: readonly string[];
  readonly password: string;
  /** The folder that has the script's directory and nothing else. */
  readonly folder: string;
  /** Returns the process id of each program. */
  pids(): Readonly<Record<string, number>>;
  /** Sends a signal to the script and whatever is in its process group, as a terminal does at Ctrl+C. */
  interrupt(): Promise<number | null>;
  output(): string;
}

/** What starts a program as a user who is not root, but can read a checkout of root. */
const NOT_ROOT =
  process.getuid?.() === 0
    ? [
        'setpriv',
        '--reuid=nobody',
        '--regid=nogroup',
        '--clear-groups',
        '--inh-caps=+dac_read_search',
        '--ambient-caps=+dac_read_search',
      ]
    : [];

/** Starts the script, after the words of `before`. */
async function startTry(before: readonly string[] = []): Promise<Tried> {
  const folder = await temporaryDirectory();
  // For the users postgres and nobody.
  chmodSync(folder.path, 0o777);
  // Other tests have ports from 20,000 on.
  const port = randomInt(10_000, 20_000 - PORTS);
  const words = [...before, SCRIPT, '--port', `${port}`, '--people', `${PEOPLE.length}`];
  const child = spawn(words[0] ?? SCRIPT, words.slice(1), {
    detached: true,
    env: { ...process.env, TMPDIR: folder.path },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collected(child);
  const interrupt = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'close');
      process.kill(-(child.pid ?? 0), 'SIGINT');
      await ended;
    }
    return child.exitCode;
  };
  onEnd.push(async () => {
    await interrupt();
    await folder.remove();
  });
  await matchOutput(child, output, /Ctrl\+C stops everything/);
  const said = (name: string) => new RegExp(`^${name} +(\\S+)`, 'm').exec(output())?.[1] ?? '';
  const pids = join(said('directory'), 'pids');
  return {
    url: said('The drive'),
    gateways: [said('gateway-1'), said('gateway-2')],
    password: said('password'),
    folder: folder.path,
    pids: () =>
      Object.fromEntries(readdirSync(pids).map((name) => [name, Number(readFileSync(join(pids, name)))])),
    interrupt,
    output,
  };
}

function collected(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return () => text;
}

const onEnd: (() => Promise<void>)[] = [];
let tried: Tried;

beforeAll(async () => {
  tried = await startTry();
});
afterAll(async () => {
  for (const end of onEnd) await end();
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(
  base: string,
  person: string,
  method: string,
  path: string,
  body?: string,
): Promise<Answer> {
  const authorization = `Basic ${Buffer.from(`${person}:${tried.password}`).toString('base64')}`;
  const answer = await fetch(new URL(path, base), {
    method,
    headers: { authorization },
    ...(body !== undefined && { body }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** Asks again, as clients do, while a program that was killed is missed. */
function askUntil(statuses: readonly number[], ...words: Parameters<typeof ask>): Promise<Answer> {
  return eventually(async () => {
    const answer = await ask(...words);
    expect(statuses, answer.text).toContain(answer.status);
    return answer;
  });
}

/** Returns the process ids of all programs of a script: those whose command or environment names its folder. */
function processesOf({ folder }: Tried): readonly number[] {
  const names = (file: string) => {
    try {
      return readFileSync(file, 'latin1').includes(folder);
    } catch {
      // It has ended.
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => names(`/proc/${name}/cmdline`) || names(`/proc/${name}/environ`))
    .map(Number);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function expectNothingLeft(stopped: Tried): Promise<void> {
  const pids = Object.values(stopped.pids());
  expect(processesOf(stopped).length).toBeGreaterThanOrEqual(pids.length);
  expect(await stopped.interrupt(), stopped.output()).toBe(130);
  expect(pids.filter(isAlive)).toEqual([]);
  expect(processesOf(stopped)).toEqual([]);
  expect(readdirSync(stopped.folder)).toEqual([]);
}

test('the script starts each program once, and what a person stores at one gateway is read at the other and through haproxy', async () => {
  expect(Object.keys(tried.pids()).sort()).toEqual(PROGRAMS);
  const [one = '', other = ''] = tried.gateways;
  for (const person of PEOPLE) {
    expect((await ask(one, person, 'PUT', 'mine', `of ${person}`)).status).toBe(201);
    expect(await ask(other, person, 'GET', 'mine')).toEqual({ status: 200, text: `of ${person}` });
    expect((await askUntil([200], tried.url, person, 'GET', 'mine')).text).toBe(`of ${person}`);
  }
});

test('rclone copies a folder to the drive behind haproxy and finds it equal at each gateway', async () => {
  const { url, password, gateways } = tried;
  const source = join(PROJECT_ROOT, 'docs/deploy');
  for (const [index, base] of [url, ...gateways].entries()) {
    const rclone = await configureRclone({ url: base, user: 'person-1', password });
    if (index === 0) await rclone.run('copy', source, 'drive:deploy');
    await rclone.run('check', source, 'drive:deploy');
    await rclone.remove();
  }
});

test('all tests of litmus pass behind haproxy', async () => {
  await passLitmus(SUITES, [tried.url, 'person-2', tried.password]);
});

/** Files that each person writes while a program is killed. */
const FILES = effort(8);

test.each(
  combinations(['node-1', 'redis', 'postgresql-2', 'haproxy', 'postgresql-1', 'node-2', 'gateway-1']),
)(
  'people who write while %s is killed lose nothing that was acknowledged, and it is started again',
  async (killed) => {
    const before = tried.pids()[killed] ?? 0;
    const write = async (person: string) => {
      // 405: it was made, but its answer was lost.
      await askUntil([201, 405], tried.url, person, 'MKCOL', `${killed}/`);
      for (let count = 0; count < FILES; count++) {
        if (person === 'person-1' && count === 2) process.kill(before, 'SIGKILL');
        await askUntil([201, 204], tried.url, person, 'PUT', `${killed}/${count}`, `${person} ${count}`);
      }
    };
    await Promise.all(PEOPLE.map(write));
    const read = async (person: string) => {
      for (let count = 0; count < FILES; count++) {
        const { text } = await askUntil([200], tried.url, person, 'GET', `${killed}/${count}`);
        expect(text).toBe(`${person} ${count}`);
      }
    };
    await Promise.all(PEOPLE.map(read));
    await expectSoon(() => isAlive(before)).toBe(false);
    await expectSoon(() => isAlive(tried.pids()[killed] ?? before)).toBe(true);
    for (const base of tried.gateways) await askUntil([200], base, 'person-1', 'GET', `${killed}/0`);
  },
);

test('Ctrl+C ends every program of the script and removes every file', async () => {
  await expectNothingLeft(tried);
});

test('a user who is not root runs every program of the script, and Ctrl+C removes every file', async () => {
  const own = await startTry(NOT_ROOT);
  const mine = `${own.url}mine`;
  const authorization = `Basic ${Buffer.from(`person-1:${own.password}`).toString('base64')}`;
  expect((await fetch(mine, { method: 'PUT', headers: { authorization }, body: 'mine' })).status).toBe(201);
  expect(await (await fetch(mine, { headers: { authorization } })).text()).toBe('mine');
  for (const pid of Object.values(own.pids())) expect(statSync(`/proc/${pid}`).uid).not.toBe(0);
  await expectNothingLeft(own);
});

test('the script names the package of each program that is missing', async () => {
  const folder = await temporaryDirectory();
  onTestFinished(() => folder.remove());
  // What the script itself needs, without node, redis-server and setpriv.
  for (const program of ['dirname', 'find', 'sort', 'head'])
    symlinkSync(join('/usr/bin', program), join(folder.path, program));
  const { code, output } = await command(SCRIPT, [], { environment: { PATH: folder.path } });
  expect(code).toBe(2);
  for (const [program, name] of [
    ['node', 'nodejs'],
    ['redis-server', 'redis-server'],
    ['setpriv', 'util-linux'],
  ])
    expect(output).toContain(`try.sh: ${program} is missing: apt install ${name}\n`);
});

test('the script refuses a taken port, and starts nothing', async () => {
  const folder = await temporaryDirectory();
  onTestFinished(() => folder.remove());
  const server = createServer().listen(await freePort(), '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo; // it listens on a port
  const { code, output } = await command(SCRIPT, ['--port', `${port - PORTS + 1}`], {
    environment: { TMPDIR: folder.path },
  });
  expect(code).toBe(2);
  expect(output).toMatch(/^try\.sh: port \d+ is taken: give the first of nine free ones with --port$/m);
  expect(readdirSync(folder.path)).toEqual([]);
});
