import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { startTestService, type TestService } from '../support/service.ts';

// Files in pieces, as Nextcloud's clients send them, through a gateway to the service. Without a login, any name is the user's.

const MIB = 1024 * 1024;
const PIECE_BYTES = 3 * MIB;
const BYTES = pseudoRandomBytes(10 * MIB + 5, 11);
const NUMBERS = [1, 2, 3, 4];
const FILES = '/remote.php/dav/files/ann';

const pieceOf = (number: number) => BYTES.subarray((number - 1) * PIECE_BYTES, number * PIECE_BYTES);

let service: TestService;
let client: GatewayClient;
let uploads = 0;
/** The address of the upload of the running test, and the name of its file. */
let upload = '';
let file = '';

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());
beforeEach(() => {
  uploads += 1;
  upload = `/remote.php/dav/uploads/ann/${uploads}`;
  file = `/file ${uploads}.bin`;
});

async function status(
  method: string,
  target: string,
  options: Parameters<GatewayClient['send']>[2] = {},
): Promise<number> {
  return (await client.send(method, target, options)).status;
}

const put = (number: number, headers = {}) =>
  status('PUT', `${upload}/${number}`, { body: pieceOf(number), headers });

function move(headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const Destination = `${FILES}${encodeURI(file)}`;
  return status('MOVE', `${upload}/.file`, { headers: { Destination, ...headers } });
}

/** Returns the sizes of the pieces that have arrived, by their names. */
async function arrived(): Promise<Record<string, number>> {
  const { body } = await client.send('PROPFIND', upload, { headers: { Depth: '1' } });
  const [, ...rows] = await parseMultistatus(body.toString());
  return Object.fromEntries(
    rows.map(({ href, properties }) => [
      href.slice(upload.length + 1),
      Number(properties.get('{DAV:}getcontentlength')?.text),
    ]),
  );
}

async function expectStored(): Promise<void> {
  const { body } = await client.send('GET', file);
  expect(body.equals(BYTES)).toBe(true);
}

describe.each([
  ['write-through', false],
  ['write-back', true],
])('with %s', (_, writeBack) => {
  let gateway: TestGateway;
  let directory: string;
  const start = async () => {
    gateway = await startTestGateway({ service, writeBack, directory });
    client = new GatewayClient(gateway.url);
  };
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'davgate-pieces-'));
    await start();
  });
  afterAll(async () => {
    client.close();
    await gateway.close();
    await rm(directory, { recursive: true, force: true });
  });

  test('pieces that arrive at the same time and in any order become a file that reads back equal', async () => {
    expect(await status('MKCOL', upload)).toBe(201);
    expect(await Promise.all([4, 2, 3, 1].map((number) => put(number)))).toEqual([201, 201, 201, 201]);
    expect(await status('GET', file)).toBe(404);
    expect(await move({ 'OC-Total-Length': String(BYTES.length) })).toBe(201);
    await expectStored();
  });

  test('after a connection that broke in a piece, PROPFIND tells what is there, and the rest makes the file whole', async () => {
    await status('MKCOL', upload);
    await put(1);
    const lost = client.send('PUT', `${upload}/2`, { body: pieceOf(2), leaveAfterBytes: MIB });
    await expect(lost).rejects.toThrow('left');
    const sizes = await arrived();
    expect(sizes).toEqual({ 1: PIECE_BYTES });
    expect(await move({ 'OC-Total-Length': String(BYTES.length) })).toBe(400);
    for (const number of NUMBERS) if (sizes[number] === undefined) expect(await put(number)).toBe(201);
    expect(await move({ 'OC-Total-Length': String(BYTES.length) })).toBe(201);
    await expectStored();
  });

  test('an upload goes on after a restart of the gateway', async () => {
    await status('MKCOL', upload);
    await Promise.all([put(1), put(4)]);
    client.close();
    await gateway.close();
    await start();
    expect(await arrived()).toEqual({ 1: PIECE_BYTES, 4: pieceOf(4).length });
    await Promise.all([put(2), put(3)]);
    expect(await move()).toBe(201);
    await expectStored();
  });
});

test('a MOVE beyond the quota of the user answers 507, and so does a piece that announces such a file', async () => {
  const views = {
    ann: [{ at: '/', root: '/small', quotaBytes: 8 * MIB }],
    bob: [
      { at: '/work', root: '/work' },
      { at: '/home', root: '/home' },
    ],
  };
  const gateway = await startTestGateway({ service, views });
  client = new GatewayClient(gateway.url);
  for (const folder of ['/small', '/work', '/home']) await status('MKCOL', folder);
  const as = (user: string) => ({ 'x-test-user': user });
  await status('MKCOL', upload, { headers: as('ann') });
  const announced = { Destination: `${FILES}${encodeURI(file)}`, 'OC-Total-Length': String(BYTES.length) };
  expect(await put(1, { ...as('ann'), ...announced })).toBe(507);
  for (const number of NUMBERS) expect(await put(number, as('ann'))).toBe(201);
  expect(await move(as('ann'))).toBe(507);
  expect(await status('GET', `/small${file}`)).toBe(404);

  // A user of several drives names the folder of one of them.
  upload = upload.replace('ann', 'bob');
  await status('MKCOL', upload, { headers: as('bob') });
  for (const number of NUMBERS) await put(number, as('bob'));
  const Destination = `/remote.php/dav/files/bob/home${encodeURI(file)}`;
  expect(await status('MOVE', `${upload}/.file`, { headers: { ...as('bob'), Destination } })).toBe(201);
  file = `/home${file}`;
  await expectStored();
  client.close();
  await gateway.close();
});
