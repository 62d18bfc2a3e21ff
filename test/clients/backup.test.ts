import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import MarkdownIt from 'markdown-it';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { PROJECT_ROOT } from '../support/build.ts';
import { succeed } from '../support/command.ts';
import { expectSoon } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { cheapHash, type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

let directory: { readonly path: string; remove(): Promise<void> };
/** A service elsewhere, which fails in time so that a write stays pending. */
let service: TestService;
let data: string;
let program: Program | undefined;
/** The same one before and after, because shared links begin with it. */
let port: number;

beforeEach(async () => {
  [directory, service, port] = await Promise.all([temporaryDirectory(), startTestService(), freePort()]);
  data = join(directory.path, 'data');
  const config = {
    drives: { local: {}, away: { 'api-url': service.url, token: service.token } },
    users: [{ name: 'tester', 'password-hash': cheapHash('pass word:1'), drives: ['local', 'away'] }],
    'write-mode': 'back',
  };
  await writeFile(join(directory.path, 'davgate.json'), JSON.stringify(config), { mode: 0o600 });
});
afterEach(async () => {
  await program?.kill();
  await service.close();
  await directory.remove();
});

const words = () => ['--config', join(directory.path, 'davgate.json')];

async function start(): Promise<Program> {
  program = await startProgram({ dataDirectory: data, port, login: 'configured', args: words() });
  return program;
}

/** Runs the commands that a section of the page gives. */
async function runCommandsOf(section: string): Promise<void> {
  const page = await readFile(join(PROJECT_ROOT, 'docs/backup-and-upgrade.md'), 'utf8');
  const commands = fencesOf(page, section, 'sh')[0] ?? '';
  expect(commands).toContain('tar ');
  const script = commands.replaceAll('DATA-DIR', data);
  await succeed('sh', ['-e', '-c', script], { directory: directory.path });
}

/** Returns the examples in a language below a heading. */
function fencesOf(page: string, section: string, language: string): readonly string[] {
  const tokens = new MarkdownIt().parse(page, {});
  const start = tokens.findIndex(({ type, content }) => type === 'inline' && content === section);
  const rest = tokens.slice(start + 2);
  const end = rest.findIndex(({ type, tag }) => type === 'heading_open' && tag === 'h2');
  return (end < 0 ? rest : rest.slice(0, end))
    .filter(({ type, info }) => type === 'fence' && info === language)
    .map(({ content }) => content);
}

interface Sent {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function ask(
  method: string,
  path: string,
  body = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<Sent> {
  const { url = '', authorization = '' } = program ?? {};
  const answer = await fetch(new URL(path, url), {
    method,
    headers: { authorization: `Basic ${Buffer.from('tester:pass word:1').toString('base64')}`, ...headers },
    ...(body !== '' && { body }),
  });
  expect(authorization).not.toBe('');
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const patch = (inner: string) =>
  `<D:propertyupdate xmlns:D="DAV:" xmlns:x="urn:x" xmlns:g="https://davgate.dev/ns"><D:set><D:prop>${inner}</D:prop></D:set></D:propertyupdate>`;
const find = (inner: string) =>
  `<D:propfind xmlns:D="DAV:" xmlns:x="urn:x" xmlns:g="https://davgate.dev/ns"><D:prop>${inner}</D:prop></D:propfind>`;
const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

const pendingFiles = async () => {
  const { text } = await ask('GET', '/.davgate/healthz');
  return (JSON.parse(text) as { journalFiles: number }).journalFiles;
};

/** Returns the sizes of a file's versions, the newest first. */
async function versionSizes(path: string): Promise<readonly number[]> {
  const { text } = await ask('GET', `/.davgate/api/versions?path=${encodeURIComponent(path)}`);
  return (JSON.parse(text) as { versions: { sizeBytes: number }[] }).versions.map(
    ({ sizeBytes }) => sizeBytes,
  );
}

test('a backup made and restored with the commands of the page has every file, version, lock, property, link and pending write', async () => {
  await start();
  await ask('PUT', '/local/plan.txt', 'one');
  await expectSoon(pendingFiles).toBe(0);
  await ask('PUT', '/local/plan.txt', 'second');
  await ask('PUT', '/local/locked.txt', 'locked');
  await expectSoon(pendingFiles).toBe(0);
  expect((await ask('PROPPATCH', '/local/plan.txt', patch('<x:colour>green</x:colour>'))).status).toBe(207);
  expect((await ask('PROPPATCH', '/local/plan.txt', patch('<g:shared-link/>'))).status).toBe(207);
  const found = await ask('PROPFIND', '/local/plan.txt', find('<g:shared-link/>'), { depth: '0' });
  const link = />(http[^<]*\/scl\/[^<]*)</.exec(found.text)?.[1]?.replaceAll('&amp;', '&') ?? found.text;
  const locked = await ask('LOCK', '/local/locked.txt', LOCK, { timeout: 'Second-3600' });
  const lockToken = locked.headers.get('lock-token') ?? '';
  service.service.setFaults({ 'error-write-share': 1 });
  expect((await ask('PUT', '/away/pending.txt', 'pending')).status).toBe(201);
  expect(await pendingFiles()).toBe(1);
  expect(await program?.stop()).toBe(0);

  await runCommandsOf('What to back up');
  await rm(data, { recursive: true });
  await runCommandsOf('Restore');

  const check = await runProgram(['service', 'check', '--data', join(data, 'service')]);
  expect([check.code, check.output]).toEqual([0, expect.stringMatching(/^No damage in /)]);
  service.service.setFaults({});
  await start();
  expect((await ask('GET', '/local/plan.txt')).text).toBe('second');
  expect(await versionSizes('/local/plan.txt')).toEqual([6, 3]);
  const properties = await ask('PROPFIND', '/local/plan.txt', find('<x:colour/>'), { depth: '0' });
  expect(properties.text).toContain('>green<');
  expect(await (await fetch(link.replace('dl=0', 'raw=1'))).text()).toBe('second');
  expect((await ask('PUT', '/local/locked.txt', 'x')).status).toBe(423);
  expect((await ask('PUT', '/local/locked.txt', 'x', { if: `(${lockToken})` })).status).toBe(204);
  await expectSoon(
    async () => (await rpc(service, 'files/get_metadata', { path: '/pending.txt' })).status,
  ).toBe(200);
});

test('an older davgate refuses a data directory of a newer one with the line of the page, and changes nothing', async () => {
  await start();
  await ask('PUT', '/local/plan.txt', 'one');
  expect(await program?.stop()).toBe(0);
  const file = join(data, 'state', 'state.db');
  const newer = new Sqlite(file);
  newer.pragma('user_version = 1000');
  newer.close();
  const before = await readFile(file);
  const { code, output } = await runProgram([
    ...words(),
    '--listen',
    `127.0.0.1:${port}`,
    '--data-dir',
    data,
  ]);
  const page = await readFile(join(PROJECT_ROOT, 'docs/backup-and-upgrade.md'), 'utf8');
  const [line = ''] = fencesOf(page, 'Downgrade', 'text');
  expect([code, output]).toEqual([2, line.replaceAll('DATA-DIR', data)]);
  expect(await readFile(file)).toEqual(before);
  expect(existsSync(join(data, 'state', 'state.db-wal'))).toBe(false);
});
