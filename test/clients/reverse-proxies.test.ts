import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { IS_LONG } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { passLitmus, SUITES } from '../support/litmus.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import {
  examplesOf,
  type ProxyName,
  type ReverseProxy,
  startReverseProxy,
} from '../support/reverse-proxy.ts';

// Each example in docs/reverse-proxy.md, run as it stands there but for ports and certificates: https at the proxy, http to
// davgate behind it.

const PATH = '/drive';

interface Example {
  readonly proxy: ProxyName;
  readonly place: string;
  readonly index: number;
  readonly base: string;
  readonly path: string;
  /** Whether litmus and the large file pass through it. The examples of one proxy differ in paths, not in how bodies pass. */
  readonly isThorough: boolean;
}

const EXAMPLES: readonly Example[] = [
  ...(['nginx', 'apache', 'caddy', 'haproxy'] as const).flatMap((proxy) => [
    { proxy, place: 'at the root', index: 0, base: '', path: '', isThorough: IS_LONG },
    {
      proxy,
      place: 'below a path',
      index: 1,
      base: PATH,
      path: PATH,
      isThorough: proxy === 'nginx' || IS_LONG,
    },
  ]),
  {
    ...{ proxy: 'caddy', place: 'below a path that it takes off', index: 2, base: '', path: PATH },
    isThorough: IS_LONG,
  },
];

const MIB = 1024 * 1024;
const BLOCK = pseudoRandomBytes(MIB, 7);

/** Size of the large file, in MiB: more than the buffers of a proxy and its sockets hold. */
const LARGE_MIB = IS_LONG ? 300 : 40;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const programs = new Map<string, Program>();

beforeAll(async () => {
  directory = await temporaryDirectory();
  for (const base of ['', PATH]) {
    const args = ['--trusted-proxy', '127.0.0.1', '--base-path', base || '/'];
    programs.set(
      base,
      await startProgram({ dataDirectory: `${directory.path}/of${base.replace('/', '-')}`, args }),
    );
  }
});
afterAll(async () => {
  await Promise.all([...programs.values()].map((program) => program.stop()));
  await directory.remove();
});

test('every example of docs/reverse-proxy.md is tested', async () => {
  for (const proxy of ['nginx', 'apache', 'caddy', 'haproxy'] as const)
    expect((await examplesOf(proxy)).length).toBe(EXAMPLES.filter((one) => one.proxy === proxy).length);
});

describe.each(EXAMPLES)('$proxy $place', ({ proxy: name, index, base, path, isThorough }) => {
  const blocks = LARGE_MIB;
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
  let proxy: ReverseProxy;
  let program: Program;

  beforeAll(async () => {
    program = programs.get(base) as Program; // started above
    const example = (await examplesOf(name))[index] ?? '';
    proxy = await startReverseProxy(name, example, new URL(program.url).host);
  });
  afterAll(async () => {
    agent.destroy();
    await proxy?.stop();
  });

  interface Sent {
    readonly headers?: OutgoingHttpHeaders;
    readonly body?: string | Readable;
  }

  /** Begins a request for a path of the drive. */
  function begin(method: string, target: string, headers: OutgoingHttpHeaders = {}) {
    const { authorization } = program;
    const all = Object.entries({ authorization, ...headers }).filter(([, value]) => value !== undefined);
    return request(proxy.url + path + target, { method, agent, headers: Object.fromEntries(all) });
  }

  async function send(method: string, target: string, { headers, body }: Sent = {}) {
    const outgoing = begin(method, target, headers);
    const answered = once(outgoing, 'response') as Promise<[import('node:http').IncomingMessage]>; // arguments of 'response'
    // Both fail when the proxy disconnects: neither failure may stay unhandled.
    const sent = body instanceof Readable ? pipeline(body, outgoing) : outgoing.end(body);
    const [[answer]] = await Promise.all([answered, sent]);
    const bytes = await buffer(answer);
    const { statusCode: status = 0, headers: found } = answer as {
      statusCode?: number;
      headers: IncomingHttpHeaders;
    };
    return { status, headers: found, bytes, text: bytes.toString() };
  }

  /** Returns the lines of davgate's log about a path of the drive. */
  const logged = (target: string) =>
    program
      .output()
      .split('\n')
      .filter((line) => line.includes(`path="${target}"`));

  if (isThorough) {
    test('litmus passes through the proxy without a warning', () =>
      passLitmus(SUITES, [`${proxy.url}${path}/`, program.user, program.password]));

    test(`a file of ${blocks} MiB is stored, and read whole and in ranges`, async () => {
      const sizeBytes = blocks * BLOCK.length;
      const body = Readable.from(Array.from({ length: blocks }, () => BLOCK));
      const headers = { 'content-length': sizeBytes };
      expect((await send('PUT', '/large.bin', { headers, body })).status).toBe(201);
      const whole = begin('GET', '/large.bin').end();
      const [answer] = (await once(whole, 'response')) as [import('node:http').IncomingMessage]; // arguments of 'response'
      expect([answer.statusCode, answer.headers['content-length']]).toEqual([200, String(sizeBytes)]);
      const [read, written] = [createHash('sha256'), createHash('sha256')];
      for await (const piece of answer) read.update(piece as Buffer); // no encoding is set
      for (let block = 0; block < blocks; block++) written.update(BLOCK);
      expect(read.digest('hex')).toBe(written.digest('hex'));
      const start = (blocks / 2) * BLOCK.length - 1;
      const part = await send('GET', '/large.bin', { headers: { range: `bytes=${start}-${start + 1}` } });
      expect([part.status, part.headers['content-range']]).toEqual([
        206,
        `bytes ${start}-${start + 1}/${sizeBytes}`,
      ]);
      expect(part.bytes).toEqual(Buffer.from([BLOCK[BLOCK.length - 1] ?? 0, BLOCK[0] ?? 0]));
      const two = await send('GET', '/large.bin', { headers: { range: `bytes=0-1,${start}-${start + 1}` } });
      expect([two.status, two.headers['content-type']]).toEqual([
        206,
        expect.stringContaining('multipart/byteranges'),
      ]);
    });

    test('davgate stops reading a file soon after the client has gone away', async () => {
      const target = `/${randomUUID()}.bin`;
      await send('COPY', '/large.bin', { headers: { destination: `${path}${target}` } });
      const outgoing = begin('GET', target).end();
      const [answer] = (await once(outgoing, 'response')) as [import('node:http').IncomingMessage]; // arguments of 'response'
      await once(answer, 'data');
      outgoing.destroy();
      await expectSoon(() => logged(target).filter((line) => line.includes('method="GET"'))).toEqual([
        expect.stringContaining('cut=true'),
      ]);
      for (const path of [target, '/large.bin']) await send('DELETE', path);
    });
  }

  test('an upload whose client goes away leaves the old content', async () => {
    const target = `/${randomUUID()}.txt`;
    expect((await send('PUT', target, { body: 'old' })).status).toBe(201);
    const outgoing = begin('PUT', target, { 'content-length': 10 * BLOCK.length });
    outgoing.on('error', () => undefined);
    outgoing.write(BLOCK, () => outgoing.destroy());
    await expectSoon(() => logged(target).filter((line) => line.includes('method="PUT"'))).toHaveLength(2);
    expect((await send('GET', target)).text).toBe('old');
  });

  test('MOVE and COPY go to a Destination with https, and Location and hrefs have the path', async () => {
    expect((await send('MKCOL', '/moves/')).headers.location).toBe(`${path}/moves/`);
    await send('PUT', '/moves/50%25%20%23a.txt', { body: 'moved' });
    const headers = { destination: `${proxy.url}${path}/moves/b%25%C3%BC.txt`, overwrite: 'F' };
    const moved = await send('MOVE', '/moves/50%25%20%23a.txt', { headers });
    expect([moved.status, moved.headers.location]).toEqual([201, `${path}/moves/b%25%C3%BC.txt`]);
    const copied = await send('COPY', '/moves/', { headers: { destination: `${proxy.url}${path}/copies/` } });
    expect(copied.status).toBe(201);
    const listed = await send('PROPFIND', '/copies/', { headers: { depth: '1' } });
    expect([...listed.text.matchAll(/<D:href>([^<]*)</g)].map(([, href]) => href)).toEqual([
      `${path}/copies/`,
      `${path}/copies/b%25%C3%BC.txt`,
    ]);
    for (const folder of ['/moves/', '/copies/']) expect((await send('DELETE', folder)).status).toBe(204);
  });

  test('an If header of 24 KiB reaches davgate', async () => {
    const tokens = Array.from({ length: 480 }, (_, at) => `(<urn:uuid:${String(at).padStart(40, '0')}>)`);
    expect(tokens.join(' ').length).toBeGreaterThan(24 * 1024);
    const refused = await send('PUT', '/conditional.txt', { headers: { if: tokens.join(' ') }, body: 'x' });
    expect([refused.status, refused.text]).toEqual([
      412,
      expect.stringContaining('none of the lists in the If header matches'),
    ]);
  });

  test('a client that waits for 100 Continue gets it, and stores its file', async () => {
    const outgoing = begin('PUT', '/continued.txt', { expect: '100-continue', 'content-length': 9 });
    outgoing.flushHeaders();
    await once(outgoing, 'continue');
    outgoing.end('continued');
    const [answer] = (await once(outgoing, 'response')) as [import('node:http').IncomingMessage]; // arguments of 'response'
    answer.resume();
    expect(answer.statusCode).toBe(201);
    expect((await send('GET', '/continued.txt')).text).toBe('continued');
    await send('DELETE', '/continued.txt');
  });

  test('the health check shows its details to this machine and not to clients of the proxy', async () => {
    const headers = { authorization: undefined };
    expect((await send('GET', '/.davgate/healthz', { headers })).text).toBe('{"status":"ok"}');
    expect((await send('GET', '/.davgate/metrics', { headers })).status).toBe(401);
  });
});
