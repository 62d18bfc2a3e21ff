import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type EditedAnswer,
  type EditedService,
  refusal,
  startEditedService,
} from '../support/edited-service.ts';
import { expectSoon } from '../support/eventually.ts';
import {
  GatewayClient,
  type GatewayOptions,
  startTestGateway,
  type TestGateway,
} from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download } from '../support/service-client.ts';

// Refusals of the service that do not mean what they say: davgate's own change is their cause, or a moment's delay.

let service: TestService;
let edited: EditedService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  edited = await startEditedService(service.url);
});
afterEach(async () => {
  client.close();
  await gateway.close();
  await edited.close();
  await service.close();
});

/** Starts a gateway whose retries come at once. */
async function start(options: Partial<GatewayOptions> = {}): Promise<void> {
  gateway = await startTestGateway({ service: { ...service, url: edited.url }, random: () => 0, ...options });
  client = new GatewayClient(gateway.url);
}

async function send(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
  const answer = await client.send(method, path, {
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
  return { ...answer, text: answer.body.toString() };
}

const NOT_FOUND = refusal({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found');
/** Longer than davgate retries. */
const LIMITED: EditedAnswer = { status: 429, headers: { 'retry-after': '2' }, text: 'Too many requests.' };
const DEADLINE_MS = 1_000;

/** Loses the answer to the next call of `route`. The first lookup then finds nothing yet, and the others are refused. */
function loseUnseen(route: string): void {
  let isLost = false;
  let looks = 0;
  edited.edit = (call, answer) => {
    if (isLost || call.route !== route) return answer;
    isLost = true;
    return 'lost';
  };
  edited.instead = (call) => {
    if (!isLost || call.route !== 'files/get_metadata') return undefined;
    looks += 1;
    return looks === 1 ? NOT_FOUND : LIMITED;
  };
}

test('a MOVE that the service made, which davgate cannot find out, answers 503, and local files follow', async () => {
  await start({ deadlineMs: DEADLINE_MS });
  await send('MKCOL', '/old/');
  await send('PUT', '/old/a.txt', {}, 'a');
  await send('PUT', '/old/.DS_Store', {}, 'local');
  loseUnseen('files/move_v2');
  expect((await send('MOVE', '/old/', { destination: '/new/' })).status).toBe(503);
  edited.instead = () => undefined;
  await expectSoon(async () => (await send('GET', '/new/.DS_Store')).text).toBe('local');
  await expectSoon(async () => (await send('GET', '/new/a.txt')).text).toBe('a');
});

test('a new folder and a new file that the service made, which davgate cannot find out, answer 503', async () => {
  await start({ deadlineMs: DEADLINE_MS });
  loseUnseen('files/create_folder_v2');
  expect((await send('MKCOL', '/d/')).status).toBe(503);
  edited.instead = () => undefined;
  await expectSoon(async () => (await send('PROPFIND', '/d/', { depth: '0' })).status).toBe(207);
  loseUnseen('files/upload');
  expect((await send('PUT', '/f', { 'if-none-match': '*' }, 'mine')).status).toBe(503);
  expect((await download(service, '/f')).text).toBe('mine');
});

test.each([
  ['a free path', 201],
  ['an existing file', 204],
])(
  'a file that is moved to %s at once after its upload is moved although the service denies it twice',
  async (_target, status) => {
    await start();
    if (status === 204) await send('PUT', '/target.txt', {}, 'old');
    await send('PUT', '/temporary.txt', {}, 'new');
    let denials = 0;
    edited.instead = ({ route, arg }) => {
      if (route !== 'files/move_v2' || (arg as { from_path: string }).from_path !== '/temporary.txt')
        return undefined;
      denials += 1;
      return denials > 2
        ? undefined
        : refusal({ '.tag': 'from_lookup', from_lookup: { '.tag': 'not_found' } }, 'from_lookup/not_found');
    };
    expect((await send('MOVE', '/temporary.txt', { destination: '/target.txt' })).status).toBe(status);
    expect((await send('GET', '/target.txt')).text).toBe('new');
    expect((await send('GET', '/temporary.txt')).status).toBe(404);
  },
);
