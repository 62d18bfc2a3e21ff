import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRedisState } from '../../src/state/redis/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { effort, IS_LONG } from '../support/effort.ts';
import { eventually, expectSoon } from '../support/eventually.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import type { GatewayClient } from '../support/gateway.ts';
import { type RedisGateways, startRedisGateways } from '../support/redis-gateways.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc, storedPaths } from '../support/service-client.ts';

// Several gateways on one Redis: what one has acknowledged, every other shows at once.

let service: TestService;
let gateways: RedisGateways;
let one: GatewayClient;
let other: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gateways = await startRedisGateways(service, 2);
  [one, other] = gateways.clients as [GatewayClient, GatewayClient];
});
afterEach(async () => {
  await gateways.close();
  await service.close();
});

async function send(client: GatewayClient, method: string, path: string, headers = {}, text = '') {
  const {
    status,
    headers: sent,
    body,
  } = await client.send(method, path, { headers, body: Buffer.from(text) });
  return { status, etag: sent['etag'] as string | undefined, text: body.toString() };
}

const names = async (client: GatewayClient, folder = '/') => {
  const { text } = await send(client, 'PROPFIND', folder, { depth: '1' });
  return [...text.matchAll(/<D:href>([^<]*)/g)]
    .map(([, href = '']) => href)
    .filter((href) => href !== folder);
};

test('a file that one gateway has written is read, listed and changed at another at once', async () => {
  await names(other);
  for (let round = 0; round < (IS_LONG ? 1_000 : 40); round++) {
    const path = `/f${round % 5}`;
    const [writer, reader] = round % 2 === 0 ? [one, other] : [other, one];
    const written = await send(writer, 'PUT', path, {}, `content ${round}`);
    expect(written.status).toBe(round < 5 ? 201 : 204);
    expect(await send(reader, 'GET', path)).toMatchObject({ status: 200, text: `content ${round}` });
    expect(await names(reader)).toContain(path);
    const changed = await send(reader, 'PUT', path, { 'if-match': written.etag ?? '' }, `changed ${round}`);
    expect(changed.status).toBe(204);
    expect((await send(writer, 'PUT', path, { 'if-match': written.etag ?? '' }, 'late')).status).toBe(412);
    expect((await send(writer, 'GET', path)).text).toBe(`changed ${round}`);
  }
});

test('folders and files that one gateway makes, moves, copies and deletes are so at another at once', async () => {
  await names(other);
  for (let round = 0; round < effort(8); round++) {
    expect((await send(one, 'MKCOL', '/d')).status).toBe(201);
    expect((await send(other, 'MKCOL', '/d')).status).toBe(405);
    expect((await send(other, 'PUT', '/d/a', {}, 'a')).status).toBe(201);
    expect(await names(one, '/d/')).toEqual(['/d/a']);
    expect((await send(one, 'MOVE', '/d', { destination: '/e' })).status).toBe(201);
    expect(await names(other)).toEqual(['/e/']);
    expect((await send(other, 'GET', '/d/a')).status).toBe(404);
    expect((await send(other, 'GET', '/e/a')).text).toBe('a');
    expect((await send(other, 'COPY', '/e', { destination: '/f' })).status).toBe(201);
    expect(await names(one, '/f/')).toEqual(['/f/a']);
    expect((await send(one, 'DELETE', '/e')).status).toBe(204);
    expect((await send(one, 'DELETE', '/f')).status).toBe(204);
    expect(await names(other)).toEqual([]);
    expect((await send(other, 'GET', '/f/a')).status).toBe(404);
  }
});

const setTime =
  '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><D:getlastmodified>Mon, 02 Jan 2006 15:04:05 GMT' +
  '</D:getlastmodified></D:prop></D:set></D:propertyupdate>';

test('a time that a client sets through one gateway is shown by another at once', async () => {
  await send(one, 'PUT', '/a', {}, 'a');
  await names(other);
  expect((await send(one, 'PROPPATCH', '/a', {}, setTime)).status).toBe(207);
  expect((await send(other, 'PROPFIND', '/a', { depth: '0' })).text).toContain(
    'Mon, 02 Jan 2006 15:04:05 GMT',
  );
});

test('a change made elsewhere is shown by both gateways, and only one of them asks the service for changes', async () => {
  await names(one);
  await names(other);
  await put(service, '/elsewhere', 'e');
  await expectSoon(() => names(one)).toEqual(['/elsewhere']);
  await expectSoon(() => names(other)).toEqual(['/elsewhere']);
  await rpc(service, 'files/delete_v2', { path: '/elsewhere' });
  await expectSoon(() => names(one)).toEqual([]);
  await expectSoon(() => names(other)).toEqual([]);
  expect(gateways.errors).toEqual([]);
});

type Pair<T> = readonly [T, T];

/** Adds two gateways, each of which reaches the service through gates of its own. */
async function withGates(
  use: (clients: Pair<GatewayClient>, gated: Pair<GatedService>) => Promise<void>,
): Promise<void> {
  const gated = [await startGatedService(service.url), await startGatedService(service.url)] as const;
  try {
    await use([await gateways.add(gated[0].url), await gateways.add(gated[1].url)], gated);
  } finally {
    for (const proxy of gated) await proxy.end();
  }
}

/** Lets a call of one gateway be answered when the first move of `change`, at the other gateway, has been made and not answered. */
async function answerWhileAside<T>(
  [reading, changing]: Pair<GatedService>,
  call: string,
  ask: () => Promise<T>,
  change: () => ReturnType<typeof send>,
) {
  const [sent, answer] = [reading.close(call), reading.closeBehind(call)];
  const asked = ask();
  await sent.reached;
  const aside = changing.closeBehind('move_v2');
  const changed = change();
  await aside.reached;
  sent.open();
  await answer.reached;
  answer.open();
  aside.open();
  return { changed: await changed, answered: await asked };
}

/**
 * Lets one gateway move or copy `/d` to `/e` at the moment in which the call `step` of another one, which replaces `/d/a` by a
 * copy of `/new`, has not reached the service. Then calls `check` with both gateways. `atOnce`: happens after the relocation,
 * before its gateway looks what came along.
 */
async function relocateBefore(
  step: 'copy_v2' | 'delete_v2',
  method: string,
  check: (clients: readonly GatewayClient[]) => Promise<void>,
  atOnce?: () => Promise<void>,
): Promise<void> {
  await noteParallelCommits();
  await withGates(async ([relocating, replacing], gated) => {
    await send(one, 'MKCOL', '/d');
    await send(one, 'PUT', '/d/a', {}, 'old');
    await send(one, 'PUT', '/new', {}, 'new');
    const relocation = gated[0].close(method === 'COPY' ? 'copy_v2' : 'move_v2');
    const relocated = send(relocating, method, '/d', { destination: '/e' });
    await relocation.reached;
    const gate = gated[1].close(step);
    const replaced = send(replacing, 'COPY', '/new', { destination: '/d/a' });
    await gate.reached;
    const look = atOnce && gated[0].close('get_metadata');
    relocation.open();
    expect((await relocated).status).toBe(201);
    await look?.reached;
    await atOnce?.();
    look?.open();
    gate.open();
    expect((await replaced).status).toBe(204);
    await check([relocating, replacing]);
  });
}

test.each(['COPY', 'MOVE'])(
  '%s of a folder in which another gateway replaces a file brings the old file along under its own name',
  (method) =>
    relocateBefore('copy_v2', method, async (clients) => {
      expect(await untilNoneIsHidden()).toEqual(['/d/', '/d/a', '/e/', '/e/a', '/new']);
      for (const client of [one, other, ...clients]) {
        await expectSoon(() => names(client, '/e/')).toEqual(['/e/a']);
        expect((await send(client, 'GET', '/e/a')).text).toBe('old');
        expect((await send(client, 'GET', '/d/a')).text).toBe('new');
      }
    }),
);

test.each([
  ['COPY', 'brings only the new file along', ['/d/', '/d/a', '/e/', '/e/a', '/new']],
  ['MOVE', 'loses neither the old nor the new file', ['/e/', '/e/a', '/e/a (1)', '/new']],
])(
  '%s of a folder in which another gateway has just placed a file over an old one %s',
  (method, _outcome, left) =>
    relocateBefore('delete_v2', method, async () => {
      expect(await untilNoneIsHidden()).toEqual(left);
      expect((await send(one, 'GET', '/e/a')).text).toBe('new');
    }),
);

test('an old file that came along with a folder is not lost when the folder moves on before it has its name back', () =>
  relocateBefore(
    'copy_v2',
    'MOVE',
    async () => {
      expect(await untilNoneIsHidden()).toEqual(['/d/', '/d/a', '/f/', '/f/a', '/new']);
      expect((await send(one, 'GET', '/f/a')).text).toBe('old');
    },
    async () => {
      // Elsewhere: a gateway that has heard of it would wait until it has its name back.
      await rpc(service, 'files/move_v2', { from_path: '/e', to_path: '/f' });
    },
  ));

/** Tells the gateways that they need not take turns, as they find out with time. */
async function noteParallelCommits(): Promise<void> {
  const { json } = await rpc(service, 'users/get_current_account', null);
  const { account_id: id } = json as { readonly account_id: string };
  const state = await openRedisState({ url: gateways.redis.url, clock: systemClock, log: silentLog });
  await state.budget?.(id).learned('accepted');
  await state.close();
}

/** Returns all paths at the service when none is hidden there any more. */
function untilNoneIsHidden(): Promise<readonly string[]> {
  return eventually(async () => {
    const stored = await storedPaths(service);
    expect(stored.filter((path) => path.includes('.davgate-waiting'))).toEqual([]);
    return stored;
  });
}

test('a file made elsewhere between a DELETE at the service and its answer is shown by every gateway', async () => {
  await put(service, '/f', 'old');
  await withGates(async ([deleting, another], gated) => {
    const clients = [one, other, deleting, another];
    for (const client of clients) await names(client);
    const answer = gated[0].closeBehind('permanently_delete');
    const removed = send(deleting, 'DELETE', '/f');
    await answer.reached;
    await put(service, '/f', 'new');
    for (const client of clients.filter((each) => each !== deleting))
      await expectSoon(async () => (await send(client, 'GET', '/f')).text).toBe('new');
    answer.open();
    expect((await removed).status).toBe(204);
    // A gateway that has asked for the new file before its report shows the deletion until that comes, and not for ever.
    for (const client of clients) {
      await expectSoon(() => send(client, 'GET', '/f')).toMatchObject({ status: 200, text: 'new' });
      await expectSoon(() => names(client)).toEqual(['/f']);
    }
  });
});

test.each([
  ['PROPFIND', '/d/', 'list_folder', 207, ['/']],
  ['PROPFIND', '/d/sub/', 'list_folder', 207, ['/', '/d/']],
  ['HEAD', '/d/a', 'get_metadata', 200, ['/']],
] as const)(
  '%s of %s whose %s reaches the service while another gateway changes the letter case of /d answers %i',
  async (method, path, call, status, known) => {
    for (const file of ['/d/a', '/d/sub/b']) await put(service, file, 'text');
    await withGates(async ([reading, renaming], gated) => {
      for (const folder of known) await names(reading, folder);
      const { changed, answered } = await answerWhileAside(
        gated,
        call,
        () => send(reading, method, path, { depth: '1' }),
        () => send(renaming, 'MOVE', '/d', { destination: '/D' }),
      );
      expect(changed.status).toBeLessThan(300);
      expect(answered.status).toBe(status);
    });
  },
);

test.each([
  ['MOVE', '/new', '/x/f', '/x/f'],
  ['MOVE', '/x/sub', '/x/SUB', '/x/SUB/b'],
] as const)(
  'a PROPFIND of a tree whose recursive listing is answered while another gateway does a %s of %s to %s shows %s',
  async (method, from, destination, shown) => {
    for (const file of ['/new', '/x/f', '/x/sub/b', '/y/g']) await put(service, file, file);
    await withGates(async ([reading, replacing], gated) => {
      await names(reading);
      const { changed, answered } = await answerWhileAside(
        gated,
        'list_folder',
        () => send(reading, 'PROPFIND', '/', { depth: 'infinity' }),
        () => send(replacing, method, from, { destination }),
      );
      expect(changed.status).toBeLessThan(300);
      expect(answered.text.toLowerCase()).toContain(`<d:href>${shown.toLowerCase()}</d:href>`);
      expect(await send(reading, 'GET', shown)).toMatchObject({ status: 200 });
    });
  },
);

test('a listing whose lookup of a changed file is answered while another gateway replaces the file shows it', async () => {
  for (const file of ['/new', '/f']) await put(service, file, file);
  await withGates(async ([reading, replacing], gated) => {
    const listing = gated[0].close('list_folder');
    const listed = names(reading);
    await listing.reached;
    expect((await send(replacing, 'PROPPATCH', '/f', {}, setTime)).status).toBe(207);
    const { changed, answered } = await answerWhileAside(
      gated,
      'get_metadata',
      () => {
        listing.open();
        return listed;
      },
      () => send(replacing, 'MOVE', '/new', { destination: '/f' }),
    );
    expect(changed.status).toBe(204);
    expect(answered).toContain('/f');
    expect((await send(reading, 'GET', '/f')).text).toBe('/new');
  });
});

test('random changes through two gateways and elsewhere leave both with what the service has', async () => {
  const paths = ['/a', '/b', '/a/x', '/b/x', '/a/x/y'];
  const any = <T>(some: readonly T[]): T => some[Math.floor(Math.random() * some.length)] as T;
  for (let step = 0; step < effort(30); step++) {
    const changes = Array.from({ length: 4 }, () => {
      const [client, from, to] = [any([one, other]), any(paths), any(paths)];
      return any([
        () => send(client, 'PUT', from, {}, `${step}`),
        () => send(client, 'MKCOL', from),
        () => send(client, 'DELETE', from),
        () => send(client, 'MOVE', from, { destination: to }),
        () => send(client, 'COPY', from, { destination: to }),
        () => rpc(service, 'files/delete_v2', { path: from }),
        () => rpc(service, 'files/create_folder_v2', { path: from }),
      ]);
    });
    await Promise.all(changes.map((change) => change()));
    const stored = await untilNoneIsHidden();
    for (const client of [one, other])
      await expectSoon(async () => {
        const { text } = await send(client, 'PROPFIND', '/', { depth: 'infinity' });
        const hrefs = [...text.matchAll(/<D:href>([^<]*)/g)].map(([, href = '']) => decodeURI(href));
        return hrefs.filter((href) => href !== '/').sort();
      }).toEqual(stored);
  }
});
