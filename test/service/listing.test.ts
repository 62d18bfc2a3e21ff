import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, put, refusal, refusalIn, rpc } from '../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.close());

interface Page {
  readonly entries: readonly Record<string, unknown>[];
  readonly cursor: string;
  readonly has_more: boolean;
}

const call = (name: string, argument: unknown) => rpc(service, name, argument);
const pageOf = ({ json }: Answered) => json as Page;
const namesOf = ({ entries }: Page) => entries.map(({ '.tag': tag, path_display: path }) => `${tag} ${path}`);

describe('files/list_folder', () => {
  test('list_folder answers entries with tags, a cursor and has_more', async () => {
    await put(service, '/L/File', 'text');
    await put(service, '/L/Sub/below', 'text');
    const answered = await call('files/list_folder', { path: '/l' });
    expect(answered.json).toEqual({
      entries: expect.any(Array),
      cursor: expect.any(String),
      has_more: false,
    });
    expect(namesOf(pageOf(answered)).sort()).toEqual(['file /L/File', 'folder /L/Sub']);
    for (const entry of pageOf(answered).entries) {
      const alone = await call('files/get_metadata', { path: entry['path_lower'] });
      expect(alone.json).toEqual(entry);
    }
  });

  test('list_folder with recursive answers the whole subtree in pages that continue follows', async () => {
    await put(service, '/Deep/a/b/c', 'text');
    let page = pageOf(await call('files/list_folder', { path: '/Deep', recursive: true, limit: 1 }));
    const names = namesOf(page);
    while (page.has_more) {
      page = pageOf(await call('files/list_folder/continue', { cursor: page.cursor }));
      names.push(...namesOf(page));
    }
    expect(names).toEqual(expect.arrayContaining(['folder /Deep/a', 'folder /Deep/a/b', 'file /Deep/a/b/c']));
  });

  test('list_folder takes two leading slashes for one, as rclone sends them', async () => {
    await put(service, '/Slashes/a', 'text');
    const once = pageOf(await call('files/list_folder', { path: '/Slashes' }));
    const twice = pageOf(await call('files/list_folder', { path: '//Slashes' }));
    expect(namesOf(twice)).toEqual(['file /Slashes/a']);
    expect(twice.entries).toEqual(once.entries);
  });

  test('list_folder of "" and of ns:N both answer the root', async () => {
    const account = await call('users/get_current_account', null);
    const { root_info: root } = account.json as { root_info: { root_namespace_id: string } };
    const plain = pageOf(await call('files/list_folder', { path: '' }));
    const named = pageOf(await call('files/list_folder', { path: `ns:${root.root_namespace_id}` }));
    expect(named.entries).toEqual(plain.entries);
  });

  test.each(['files/list_folder', 'files/list_folder/get_latest_cursor'])(
    '%s answers path errors for missing, non-folder and malformed paths',
    async (name) => {
      await put(service, '/not-a-folder', 'text');
      for (const [path, tag] of [
        ['/nothing', 'not_found'],
        ['/not-a-folder', 'not_folder'],
        ['/a/', 'malformed_path'],
        ['/a//b', 'malformed_path'],
        ['//', 'malformed_path'],
      ])
        expect(refusalIn(await call(name, { path }))).toEqual(
          refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } }),
        );
    },
  );

  test('list_folder/continue refuses a cursor of another account with 400', async () => {
    const { cursor } = pageOf(await call('files/list_folder', { path: '' }));
    const other = await service.service.addAccount({
      email: 'other@example.org',
      givenName: 'O',
      surname: 'T',
      mayDeletePermanently: false,
    });
    const token = await service.service.grant({ accountId: other.id, scopes: ['files.metadata.read'] });
    const answered = await rpc(service, 'files/list_folder/continue', { cursor }, { token });
    expect([answered.status, answered.text]).toEqual([
      400,
      'Error in call to API function "files/list_folder/continue": request body: cursor: unsupported cursor type',
    ]);
  });
});

describe('changes after a cursor', () => {
  test('list_folder/continue answers the files that were added and deleted after the latest cursor', async () => {
    const latest = await call('files/list_folder/get_latest_cursor', { path: '', recursive: true });
    expect(latest.json).toEqual({ cursor: expect.any(String) });
    const { cursor } = latest.json as { cursor: string };
    await put(service, '/Changes/new', 'text');
    await put(service, '/Changes/gone', 'text');
    await call('files/delete_v2', { path: '/Changes/gone' });
    const page = pageOf(await call('files/list_folder/continue', { cursor }));
    expect(namesOf(page)).toEqual(
      expect.arrayContaining(['folder /Changes', 'file /Changes/new', 'deleted /Changes/gone']),
    );
    expect(page.has_more).toBe(false);
  });

  test('list_folder/continue answers changes in pages of the limit given to get_latest_cursor', async () => {
    const argument = { path: '', recursive: true, limit: 2 };
    const latest = await call('files/list_folder/get_latest_cursor', argument);
    for (const name of ['one', 'two', 'three']) await put(service, `/Paged/${name}`, 'text');
    const first = pageOf(
      await call('files/list_folder/continue', { cursor: (latest.json as { cursor: string }).cursor }),
    );
    expect(namesOf(first)).toEqual(['folder /Paged', 'file /Paged/one']);
    expect(first.has_more).toBe(true);
    const second = pageOf(await call('files/list_folder/continue', { cursor: first.cursor }));
    expect(namesOf(second)).toEqual(['file /Paged/two', 'file /Paged/three']);
    expect(second.has_more).toBe(false);
  });

  test('list_folder/continue after the deletion of its folder answers path/not_found', async () => {
    await put(service, '/Vanishing/file', 'text');
    const { cursor } = pageOf(await call('files/list_folder', { path: '/Vanishing' }));
    await call('files/delete_v2', { path: '/Vanishing' });
    expect(refusalIn(await call('files/list_folder/continue', { cursor }))).toMatchObject({
      status: 409,
      summary: 'path/not_found',
    });
  });
});

describe('files/list_folder/longpoll', () => {
  const poll = (argument: object, headers = {}) =>
    rpc(service, 'files/list_folder/longpoll', argument, { token: null, headers });
  const latest = async () => {
    const answered = await call('files/list_folder/get_latest_cursor', { path: '', recursive: true });
    return (answered.json as { cursor: string }).cursor;
  };

  test('longpoll takes a cursor of 250,000 characters, and refuses a body over 512 KiB', async () => {
    // The longest cursor: six bytes for each character, and the folder is in it twice.
    const letter = '\u0001';
    const path = `/${Array.from({ length: 63 }, () => letter.repeat(255)).join('/')}`;
    for (const name of ['1', '2'])
      await rpc(service, 'files/create_folder_v2', { path: `${path}/${letter.repeat(250)}${name}` });
    const page = await call('files/list_folder', { path, limit: 1 });
    const { cursor } = page.json as { cursor: string };
    expect(cursor.length).toBeGreaterThan(250_000);
    expect((await poll({ cursor })).json).toEqual({ changes: true });
    const answered = await poll({ cursor: 'x'.repeat(512 * 1024) });
    expect([answered.status, answered.text]).toEqual([
      400,
      expect.stringContaining('request body: must be at most 524288 bytes'),
    ]);
  });

  test('longpoll answers at once when a change came after its cursor', async () => {
    const cursor = await latest();
    await put(service, '/polled', 'before');
    const answered = await poll({ cursor });
    expect([answered.status, answered.json]).toEqual([200, { changes: true }]);
  });

  test('longpoll answers when a change comes while it waits', async () => {
    const cursor = await latest();
    const waiting = poll({ cursor, timeout: 480 });
    await clock.untilSleeping();
    await put(service, '/polled', 'while waiting');
    expect((await waiting).json).toEqual({ changes: true });
  });

  test('longpoll answers changes: false when its timeout is over, and no earlier', async () => {
    const waiting = poll({ cursor: await latest(), timeout: 60 });
    await clock.untilSleeping();
    expect(clock.nextMs).toBe(60_000);
    await clock.advance(60_000);
    expect((await waiting).json).toEqual({ changes: false });
  });

  test.each<[object, string]>([
    [{ cursor: 'rubbish' }, 'request body: cursor: unsupported cursor type'],
    [{ cursor: 'x', timeout: 29 }, 'request body: timeout: must be at least 30, got 29'],
    [{ cursor: 'x', timeout: 481 }, 'request body: timeout: must be at most 480, got 481'],
    [{}, "request body: missing required field 'cursor'"],
  ])('longpoll refuses %j', async (argument, problem) => {
    const answered = await poll(argument);
    expect([answered.status, answered.text]).toEqual([
      400,
      `Error in call to API function "files/list_folder/longpoll": ${problem}`,
    ]);
  });

  test('longpoll with a token answers 400', async () => {
    const answered = await call('files/list_folder/longpoll', { cursor: await latest() });
    expect([answered.status, answered.text]).toEqual([
      400,
      'Error in call to API function "files/list_folder/longpoll": This function must be called without HTTP header "Authorization".',
    ]);
  });
});
