import { type ClientRequest, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storedTree } from '../faults/upstream-truth.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(() => service.close());

/** Returns the paths at the service that are `path` or lie below it. */
async function storedAt(path: string): Promise<string[]> {
  const all = Object.keys(await storedTree(service, ''));
  return all.filter((stored) => `${stored}/`.startsWith(`${path}/`));
}

describe.each([
  ['write-through', false],
  ['write-back', true],
])('a gateway with %s', (_, writeBack) => {
  let gateway: TestGateway;
  let client: GatewayClient;
  let names = 0;

  beforeAll(async () => {
    gateway = await startTestGateway({ service, writeBack });
    client = new GatewayClient(gateway.url);
    await gateway.following();
  });

  afterAll(async () => {
    client.close();
    await gateway.close();
  });

  const status = async (method: string, path: string, headers: Record<string, string> = {}) =>
    (await client.send(method, path, { headers })).status;

  /** Makes a folder with a new name; returns its path. */
  async function newFolder(): Promise<string> {
    const path = `/${writeBack ? 'back' : 'through'}-${++names}`;
    expect(await status('MKCOL', `${path}/`)).toBe(201);
    return path;
  }

  /** Sends the head and first byte of a PUT; `finish` sends the rest and resolves with the status. */
  async function beginPut(path: string, sizeBytes: number): Promise<{ finish(): Promise<number> }> {
    const outgoing: ClientRequest = request(`${gateway.url}${path}`, {
      method: 'PUT',
      agent: false,
      headers: { 'content-length': sizeBytes, expect: '100-continue' },
    });
    const answered = new Promise<number>((resolve, reject) => {
      outgoing.once('error', reject);
      outgoing.once('response', (response) => {
        buffer(response).then(() => resolve(response.statusCode ?? 0), reject);
      });
    });
    // davgate sends 100 Continue after all checks that do not need the body.
    const continued = new Promise<void>((resolve) => outgoing.once('continue', resolve));
    outgoing.flushHeaders();
    await Promise.race([continued, answered]);
    outgoing.write(Buffer.alloc(1, 'x'));
    return {
      finish() {
        outgoing.end(Buffer.alloc(sizeBytes - 1, 'x'));
        return answered;
      },
    };
  }

  describe.each([
    ['a short body', 100],
    ['a body sent as an upload session', 9 * MIB],
  ])('%s', (_, sizeBytes) => {
    test('a PUT whose folder is moved meanwhile answers 409 and stores nothing', async () => {
      const [from, to] = [await newFolder(), `${await newFolder()}/moved`];
      const put = await beginPut(`${from}/late.bin`, sizeBytes);
      expect(await status('MOVE', `${from}/`, { destination: `${to}/` })).toBe(201);
      expect(await put.finish()).toBe(409);
      expect(await status('GET', `${from}/late.bin`)).toBe(404);
      expect(await status('PROPFIND', `${from}/`, { depth: '0' })).toBe(404);
      expect(await status('GET', `${to}/late.bin`)).toBe(404);
      await gateway.landed();
      expect(await storedAt(from)).toEqual([]);
    });

    test('a PUT whose folder is deleted meanwhile answers 409 and stores nothing', async () => {
      const path = await newFolder();
      const put = await beginPut(`${path}/late.bin`, sizeBytes);
      expect(await status('DELETE', `${path}/`)).toBe(204);
      expect(await put.finish()).toBe(409);
      expect(await status('PROPFIND', `${path}/`, { depth: '0' })).toBe(404);
      await gateway.landed();
      expect(await storedAt(path)).toEqual([]);
    });

    test('a PUT whose target becomes a folder meanwhile answers 405 and keeps the folder', async () => {
      const path = await newFolder();
      const put = await beginPut(`${path}/late`, sizeBytes);
      expect(await status('MKCOL', `${path}/late/`)).toBe(201);
      expect(await status('MKCOL', `${path}/late/inside/`)).toBe(201);
      expect(await put.finish()).toBe(405);
      expect(await status('PROPFIND', `${path}/late/inside/`, { depth: '0' })).toBe(207);
    });

    test('a PUT whose folder is deleted and made again meanwhile answers 201 and is stored in the new folder', async () => {
      const path = await newFolder();
      const put = await beginPut(`${path}/late.bin`, sizeBytes);
      expect(await status('DELETE', `${path}/`)).toBe(204);
      expect(await status('MKCOL', `${path}/`)).toBe(201);
      expect(await put.finish()).toBe(201);
      expect(await status('GET', `${path}/late.bin`)).toBe(200);
    });
  });

  test('of eight PUTs at once, those into a deleted folder answer 409 and those into another folder are stored', async () => {
    const [gone, kept] = [await newFolder(), await newFolder()];
    const puts = await Promise.all(
      Array.from({ length: 8 }, (_, index) => beginPut(`${index % 2 ? gone : kept}/${index}.txt`, 100)),
    );
    expect(await status('DELETE', `${gone}/`)).toBe(204);
    const statuses = await Promise.all(puts.map((put) => put.finish()));
    expect(statuses).toEqual([201, 409, 201, 409, 201, 409, 201, 409]);
    await gateway.landed();
    expect(await storedAt(gone)).toEqual([]);
    expect(await storedAt(kept)).toHaveLength(5);
  });

  test('a PUT of .DS_Store whose folder is deleted meanwhile answers 409 and leaves no file', async () => {
    const path = await newFolder();
    const put = await beginPut(`${path}/.DS_Store`, 100);
    expect(await status('DELETE', `${path}/`)).toBe(204);
    expect(await put.finish()).toBe(409);
    expect(await status('GET', `${path}/.DS_Store`)).toBe(404);
  });
});
