import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { addApp, addPerson, FormBrowser } from '../support/consent.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { matchOutput, runProgram, spawnProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { onTerminal, type TerminalProgram } from '../support/terminal.ts';

const ANN = { email: 'ann@example.org', password: 'correct horse' };

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  await addPerson(service, ANN.email, ANN.password);
});
afterAll(() => service.close());

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
let environment: NodeJS.ProcessEnv;
let file: string;
beforeEach(async () => {
  home = await temporaryDirectory();
  const folders = { XDG_CONFIG_HOME: join(home.path, 'config'), XDG_DATA_HOME: join(home.path, 'data') };
  environment = { ...process.env, ...folders, XDG_CACHE_HOME: join(home.path, 'cache') };
  file = join(home.path, 'config/davgate/config.json');
});
afterEach(() => home.remove());

/** Puts a program on the PATH that notes the address which it should open. Returns the file of its note. */
function recordBrowser(): string {
  const [folder, note] = [join(home.path, 'bin'), join(home.path, 'opened')];
  mkdirSync(folder);
  writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\nprintf %s "$1" > '${note}'\n`);
  chmodSync(join(folder, 'xdg-open'), 0o755);
  environment = { ...environment, PATH: `${folder}:${process.env['PATH']}`, DISPLAY: ':99' };
  return note;
}

/** Grants access on the page whose address the terminal shows. Returns the code. */
async function codeFrom(terminal: TerminalProgram): Promise<string> {
  const address = await terminal.shows(/https?:\/\/\S*oauth2\/authorize\S*/);
  const browser = new FormBrowser(service);
  await browser.open(new URL(address).searchParams);
  await browser.signIn(ANN.email, ANN.password);
  await browser.press('allow');
  return /<output[^>]*>([\w-]+)<\/output>/.exec(browser.text)?.[1] ?? '';
}

async function answer(terminal: TerminalProgram, prompt: RegExp, text: string): Promise<void> {
  await terminal.shows(prompt);
  terminal.type(`${text}\r`);
}

/** The statuses of requests with these logins to the davgate that starts without any option. */
async function statusesWithoutOptions(...logins: readonly string[]): Promise<readonly number[]> {
  const { child, output } = spawnProgram([], environment);
  try {
    const url = await matchOutput(child, output, /http:\/\/127\.0\.0\.1:\d+\//);
    const statusOf = async (login: string) => {
      const authorization = `Basic ${Buffer.from(login).toString('base64')}`;
      return (await fetch(url, { method: 'PROPFIND', headers: { authorization, depth: '0' } })).status;
    };
    return await Promise.all(logins.map(statusOf));
  } finally {
    child.kill();
  }
}

test('davgate setup asks again after each wrong answer, and davgate then starts by itself with the answers', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const terminal = onTerminal(['setup'], environment);
  await answer(terminal, /Choose 1 or 2 \[1\]: /, '');
  await answer(terminal, /HOST:PORT \[127\.0\.0\.1:8765\]: /, 'nowhere');
  await answer(terminal, /"nowhere" is not HOST:PORT[\s\S]*HOST:PORT \[127\.0\.0\.1:8765\]: /, address);
  await answer(terminal, /User \[davgate\]: /, 'a:nn');
  await answer(terminal, /has no colon[\s\S]*User \[davgate\]: /, 'ann');
  await answer(terminal, /Password \(Enter alone: davgate makes one\): /, 'hidden words');
  await answer(terminal, /The same again: /, 'other words');
  await answer(terminal, /The two differ[\s\S]*davgate makes one\): /, 'hidden words');
  await answer(terminal, /The two differ[\s\S]*The same again: /, 'hidden words');
  expect(await terminal.ended()).toBe(0);
  expect(terminal.output()).not.toMatch(/hidden|other words/);
  expect(terminal.output()).toMatch(/Start it +davgate\r?\n/);
  expect(terminal.output()).toMatch(/^ok +settings/m);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).not.toContain('hidden words');
  expect(await statusesWithoutOptions('ann:hidden words', 'ann:other words')).toEqual([207, 401]);
});

test('davgate setup connects an account: an unknown app key and a mistyped code can be typed again', async () => {
  const opened = recordBrowser();
  const { app } = await addApp(service, { name: 'Mine' });
  const terminal = onTerminal(['setup', '--api-url', service.url], environment);
  await answer(terminal, /Choose 1 or 2 \[1\]: /, '2');
  await answer(terminal, /5\. Paste the key here[\s\S]*App key: /, 'unknownkey');
  await answer(terminal, /does not know this key[\s\S]*App key: /, app.key);
  const code = await codeFrom(terminal);
  await answer(terminal, /Paste the code[\s\S]*: /, `${code.slice(0, -1)}`);
  await answer(terminal, /does not accept this code[\s\S]*Paste the code[\s\S]*: /, code);
  await terminal.shows(/Connected: Ann Other \(ann@example\.org\)/);
  await eventually(() => expect(readFileSync(opened, 'utf8')).toMatch(/oauth2\/authorize\?client_id=/));
  await answer(terminal, /HOST:PORT \[127\.0\.0\.1:8765\]: /, `127.0.0.1:${await freePort()}`);
  await answer(terminal, /User \[davgate\]: /, '');
  await answer(terminal, /davgate makes one\): /, '');
  expect(await terminal.ended()).toBe(0);
  expect(terminal.output()).toMatch(/^ok +account +.*Ann Other/m);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ user: 'davgate' });
});

test('davgate setup keeps the old file as .old when it is replaced, and leaves it alone otherwise', async () => {
  const other = join(home.path, 'other.json');
  writeFileSync(other, '{"user": "old"}');
  const refused = onTerminal(['setup', '--config', other], environment);
  await answer(refused, /Replace it[\s\S]*\[no\]: /, '');
  expect(await refused.ended()).toBe(1);
  expect(readFileSync(other, 'utf8')).toBe('{"user": "old"}');

  const terminal = onTerminal(['setup', '--config', other], environment);
  await answer(terminal, /Replace it[\s\S]*\[no\]: /, 'y');
  await answer(terminal, /Choose 1 or 2 \[1\]: /, '1');
  await answer(terminal, /HOST:PORT \[127\.0\.0\.1:8765\]: /, `127.0.0.1:${await freePort()}`);
  await answer(terminal, /User \[davgate\]: /, 'new');
  await answer(terminal, /davgate makes one\): /, '');
  expect(await terminal.ended()).toBe(0);
  expect(terminal.output()).toContain(`davgate --config ${other}`);
  expect(readFileSync(`${other}.old`, 'utf8')).toBe('{"user": "old"}');
  expect(JSON.parse(readFileSync(other, 'utf8'))).toMatchObject({ user: 'new' });
});

test('davgate setup writes nothing when the terminal is left with Ctrl+D or Ctrl+C', async () => {
  for (const [key, code] of [
    ['\u0004', 1],
    ['\u0003', 130],
  ] as const) {
    const terminal = onTerminal(['setup'], environment);
    await terminal.shows(/Choose 1 or 2 \[1\]: /);
    terminal.type(key);
    expect(await terminal.ended()).toBe(code);
    expect(existsSync(file)).toBe(false);
  }
});

test('davgate setup without a terminal ends with exit code 2 and names the page of the settings', async () => {
  const { code, output } = await runProgram(['setup'], environment);
  expect([code, output]).toEqual([
    2,
    expect.stringMatching(/^davgate: setup: needs a terminal.*config\.md\)\n$/),
  ]);
});

test('davgate login in a terminal opens the browser and lets a mistyped code be typed again; --no-browser opens none', async () => {
  const opened = recordBrowser();
  const { app } = await addApp(service, { name: 'Mine' });
  const words = ['login', '--api-url', service.url, '--app-key', app.key];
  const silent = onTerminal([...words, '--no-browser'], environment);
  await answer(silent, /Paste the code[\s\S]*: /, await codeFrom(silent));
  expect(await silent.ended()).toBe(0);
  expect(existsSync(opened)).toBe(false);

  const terminal = onTerminal(words, environment);
  await answer(terminal, /Paste the code[\s\S]*: /, 'mistyped');
  await answer(terminal, /does not accept this code[\s\S]*Paste the code[\s\S]*: /, await codeFrom(terminal));
  expect(await terminal.ended()).toBe(0);
  expect(readFileSync(opened, 'utf8')).toMatch(/oauth2\/authorize\?client_id=/);
});
