import { afterAll, beforeAll, expect, test } from 'vitest';
import { combinations } from '../support/effort.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { startTestService, type TestService } from '../support/service.ts';

const closers: (() => Promise<unknown>)[] = [];
let storage: TestService;
let redis: TestRedis;

beforeAll(async () => {
  storage = await startTestService();
  closers.push(() => storage.close());
  redis = await startRedis();
  closers.push(() => redis.close());
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

const PATCH = `<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><colour xmlns="urn:x">blue</colour></D:prop></D:set>
  </D:propertyupdate>`;
const FIND = '<D:propfind xmlns:D="DAV:"><D:prop><colour xmlns="urn:x"/></D:prop></D:propfind>';

async function ask(
  { url, authorization }: Program,
  method: string,
  path: string,
  { body, ...headers }: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const init = { method, headers: { authorization, ...headers }, ...(body !== undefined && { body }) };
  const answer = await fetch(new URL(path, url), init);
  return { status: answer.status, text: await answer.text() };
}

interface SetUp {
  readonly service: GatedService;
  start(): Promise<Program>;
}

async function setUp(args: readonly string[]): Promise<SetUp> {
  const service = await startGatedService(storage.url);
  const data = await temporaryDirectory();
  closers.push(
    () => data.remove(),
    () => service.end(),
  );
  const all = ['--api-url', service.url, '--token', storage.token, ...args];
  const start = async () => {
    const program = await startProgram({ dataDirectory: data.path, args: all });
    closers.push(() => program.stop());
    return program;
  };
  return { service, start };
}

test.each(
  combinations([
    ['write-back', () => ['--write-mode', 'back']],
    ['write-through', () => ['--write-mode', 'through']],
    ['write-through with its state in Redis', () => ['--redis', redis.url]],
  ] as const),
)(
  'with %s, a COPY that the service has done when davgate is killed has its dead properties after the restart',
  async (mode, args) => {
    const { service, start } = await setUp(args());
    const folder = mode.replaceAll(' ', '-');
    const first = await start();
    for (const path of [folder, `${folder}/tree`]) expect((await ask(first, 'MKCOL', path)).status).toBe(201);
    for (const path of [`${folder}/file`, `${folder}/tree/leaf`]) {
      expect((await ask(first, 'PUT', path, { body: 'text' })).status).toBe(201);
      expect((await ask(first, 'PROPPATCH', path, { body: PATCH })).status).toBe(207);
    }
    for (const [from, to] of [
      ['file', 'file copy'],
      ['tree', 'tree copy'],
    ]) {
      const answer = service.closeBehind('copy_v2');
      const running = from === 'file' ? first : await start();
      const destination = new URL(encodeURI(`${folder}/${to}`), running.url).href;
      const copying = ask(running, 'COPY', `${folder}/${from}`, { destination }).catch(() => 'no answer');
      await answer.reached;
      await running.kill();
      expect(await copying).toBe('no answer');
      answer.open();
    }
    const last = await start();
    for (const path of ['file copy', 'tree copy/leaf']) {
      const found = await ask(last, 'PROPFIND', encodeURI(`${folder}/${path}`), { depth: '0', body: FIND });
      expect(found.text, path).toContain('blue');
    }
    expect(await last.stop()).toBe(0);
  },
);
