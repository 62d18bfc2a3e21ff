import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRemote } from '../../src/api/client.ts';
import { type BlockCache, openBlockCache } from '../../src/drive/content/block-cache.ts';
import { createContentReader } from '../../src/drive/content/content-reader.ts';
import { systemClock } from '../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { silentLog } from '../../src/util/log.ts';
import { pathOf } from '../../src/util/path.ts';
import { joined } from '../support/byte-source.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** A TCP proxy that cuts a connection after so many bytes from the service, once for each item of `cutsAfterBytes`. */
class CuttingProxy {
  readonly cutsAfterBytes: number[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(private readonly port: number) {
    this.#server = createServer((socket) => this.#connect(socket));
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #connect(socket: Socket): void {
    const service = connect(this.port, '127.0.0.1');
    let passedBytes = 0;
    for (const [one, other] of [
      [socket, service],
      [service, socket],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
    socket.pipe(service);
    service.on('data', (chunk) => {
      passedBytes += chunk.length;
      const limit = this.cutsAfterBytes[0];
      if (limit !== undefined && passedBytes > limit) {
        this.cutsAfterBytes.shift();
        socket.destroy();
      } else if (!socket.write(chunk)) {
        service.pause();
        socket.once('drain', () => service.resume());
      }
    });
  }
}

let service: TestService;
let proxy: CuttingProxy;
let remote: ReturnType<typeof createRemote>;
let cache: BlockCache;
let directory: string;

beforeAll(async () => {
  service = await startTestService();
  proxy = new CuttingProxy(Number(new URL(service.url).port));
  const url = await proxy.open();
  remote = createRemote({
    apiUrl: url,
    contentUrl: url,
    notifyUrl: url,
    credentials: { token: service.token },
    root: '',
    clock: systemClock,
    log: silentLog,
  });
  directory = await mkdtemp(join(tmpdir(), 'davgate-bytes-'));
  cache = await openBlockCache({
    directory,
    sizeBytesMax: 1024 ** 3,
    clock: systemClock,
    log: silentLog,
  });
});

afterAll(async () => {
  await cache.close();
  await remote.close();
  await proxy.close();
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

const { signal } = new AbortController();
const parts = () => ({ remote, cache, clock: systemClock, log: silentLog });

const store = (name: string, bytes: Uint8Array) =>
  remote.write(pathOf([name]), pieces(bytes), { mode: { if: 'any' } });

describe('content over a real connection to the embedded service', () => {
  // The last one takes two parts of an upload session.
  test.each([0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 1])(
    'a file of %d bytes is read back as it was written, whole and by a range',
    async (sizeBytes) => {
      const bytes = pseudoRandomBytes(sizeBytes, sizeBytes);
      const entry = await store(`of ${sizeBytes}`, bytes);
      expect(entry.sizeBytes).toBe(sizeBytes);
      const reader = createContentReader(parts());
      expect((await joined(reader.read(entry, undefined, signal))).equals(bytes)).toBe(true);
      if (sizeBytes < 2) return;
      const range = { start: 1, end: sizeBytes };
      expect((await joined(reader.read(entry, range, signal))).equals(bytes.subarray(1))).toBe(true);
    },
  );

  test('a download whose connection breaks three times returns the right bytes, whole and by a range', async () => {
    const sizeBytes = 3 * BLOCK_BYTES;
    const reader = createContentReader(parts());
    for (const range of [undefined, { start: 5, end: sizeBytes - 5 }]) {
      // Other bytes each time, because the first ones may be in the cache.
      const bytes = pseudoRandomBytes(sizeBytes, range ? 5 : 7);
      const entry = await store('broken', bytes);
      proxy.cutsAfterBytes.push(100_000, 5_000_000, 1_000_000);
      const read = await joined(reader.read(entry, range, signal));
      expect(read.equals(bytes.subarray(range?.start ?? 0, range?.end))).toBe(true);
      expect(proxy.cutsAfterBytes).toEqual([]);
    }
  });

  test('an upload whose connection breaks three times stores the right bytes', async () => {
    const bytes = pseudoRandomBytes(4 * BLOCK_BYTES + 9, 6);
    // The connection is cut right before the answers of the first calls.
    proxy.cutsAfterBytes.push(0, 0, 0);
    const entry = await store('sent', bytes);
    expect(proxy.cutsAfterBytes).toEqual([]);
    expect((await joined(createContentReader(parts()).read(entry, undefined, signal))).equals(bytes)).toBe(
      true,
    );
  });
});
