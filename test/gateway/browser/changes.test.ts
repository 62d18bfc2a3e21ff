import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually, expectSoon } from '../../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';

// The stream by which the web application learns of changes; each test has a gateway of its own.

interface Event {
  readonly folders: readonly string[];
  readonly trees: readonly string[];
  readonly locks: boolean;
  readonly writes: boolean;
}

let service: TestService;
let gateway: TestGateway;
let streams: Stream[];

beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async () => {
  gateway = await startTestGateway({ service });
  await gateway.following();
  streams = [];
});
afterEach(async () => {
  for (const stream of streams) stream.leave();
  await gateway.close();
});
afterAll(() => service.close());

/** An open stream, and the events so far. */
class Stream {
  readonly events: Event[] = [];
  hasEnded = false;
  readonly #left = new AbortController();

  async open(url: string): Promise<Response> {
    const answer = await fetch(`${url}/.davgate/api/changes`, { signal: this.#left.signal });
    void this.#read(answer).catch(() => undefined);
    return answer;
  }

  leave(): void {
    this.#left.abort();
  }

  async #read(answer: Response): Promise<void> {
    let text = '';
    for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts)
        if (part.startsWith('data: ')) this.events.push(JSON.parse(part.slice('data: '.length)));
    }
    this.hasEnded = true;
  }
}

async function watching(): Promise<Stream> {
  const stream = new Stream();
  streams.push(stream);
  expect((await stream.open(gateway.url)).headers.get('content-type')).toBe('text/event-stream');
  return stream;
}

function dav(method: string, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(encodeURI(path), gateway.url), { method, ...init });
}

/** Returns all folders that events have named. */
function foldersIn({ events }: Stream): readonly string[] {
  return events.flatMap(({ folders }) => folders);
}

test('a file that another client of the gateway stores is announced with its folder', async () => {
  await dav('MKCOL', '/own');
  const stream = await watching();
  expect((await dav('PUT', '/own/a.txt', { body: 'a' })).status).toBe(201);
  await expectSoon(() => foldersIn(stream)).toContain('/own');
  expect(stream.events.some(({ trees }) => trees.includes('/own'))).toBe(false);
});

test('a change that is made at the service, not through the gateway, is announced', async () => {
  const other = await startTestGateway({ service });
  const stream = await watching();
  await fetch(new URL('/elsewhere.txt', other.url), { method: 'PUT', body: 'x' });
  await other.close();
  await expectSoon(() => foldersIn(stream)).toContain('/');
});

test('a folder that is moved is announced with everything below its old and new place', async () => {
  await dav('MKCOL', '/before');
  const stream = await watching();
  const headers = { destination: new URL('/after', gateway.url).href };
  expect((await dav('MOVE', '/before', { headers })).status).toBe(201);
  await expectSoon(() => stream.events.flatMap(({ trees }) => trees)).toEqual(
    expect.arrayContaining(['/before', '/after']),
  );
});

test('a lock is announced when it is granted and when it ends', async () => {
  await dav('PUT', '/locked.txt', { body: 'x' });
  const stream = await watching();
  const body =
    '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
  const token = (await dav('LOCK', '/locked.txt', { body })).headers.get('lock-token') ?? '';
  await expectSoon(() => stream.events.filter(({ locks }) => locks)).toHaveLength(1);
  await dav('UNLOCK', '/locked.txt', { headers: { 'lock-token': token } });
  await expectSoon(() => stream.events.filter(({ locks }) => locks)).toHaveLength(2);
});

test('a pending write is announced when it is accepted and when it has landed', async () => {
  const back = await startTestGateway({ service, writeBack: true });
  const stream = new Stream();
  streams.push(stream);
  await stream.open(back.url);
  await fetch(new URL('/pending.txt', back.url), { method: 'PUT', body: 'x' });
  await back.landed();
  await expectSoon(() => stream.events.some(({ writes }) => writes)).toBe(true);
  await expectSoon(() => foldersIn(stream)).toContain('/');
  stream.leave();
  await back.close();
});

test('one event names at most 100 paths; for more it names the whole drive', async () => {
  await dav('MKCOL', '/many');
  const stream = await watching();
  const made = Array.from({ length: 150 }, (_, index) => dav('MKCOL', `/many/${index}`));
  expect((await Promise.all(made)).every(({ status }) => status === 201)).toBe(true);
  await eventually(() => {
    const last = stream.events.at(-1);
    expect([...foldersIn(stream), ...(last?.trees ?? [])]).toContain('/many');
  });
  for (const { folders, trees } of stream.events) expect(folders.length + trees.length).toBeLessThan(102);
});

test('a user can follow the changes on 20 pages; one more is refused with 503 until a page is closed', async () => {
  for (let count = 0; count < 20; count++) await watching();
  const refused = await new Stream().open(gateway.url);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60']);
  streams[0]?.leave();
  await eventually(watching);
});

test('a page that follows the changes does not delay the end of the gateway', async () => {
  const own = await startTestGateway({ service });
  const stream = new Stream();
  await stream.open(own.url);
  await own.close();
  await expectSoon(() => stream.hasEnded).toBe(true);
});
