import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { type Answered, headerJson, rpc, send } from '../../support/service-client.ts';
import { NAMESPACE, type ServiceOver, serviceOver } from '../../support/service-over.ts';
import { commit, body as content, opened } from '../storage/opened.ts';

const MOVE = { copy: false, autorename: false };

/** Calls of the storage after which folders are moved: more than the requests of a test make. */
const CALLS = [1, 2, 3, 4, 5, 6, 7, 8];

const READS: ReadonlySet<string | symbol> = new Set([
  'stat',
  'statAll',
  'statWithFolders',
  'list',
  'listAll',
  'latestCursor',
  'listContinue',
] satisfies (keyof Storage)[]);

/** Returns the storage with `after` called after each lookup, before its caller continues. */
function interleaved(storage: Storage, after: () => Promise<void>): Storage {
  return new Proxy(storage, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (!READS.has(name) || typeof method !== 'function') return method;
      return async (...given: unknown[]) => {
        const answer: unknown = await Reflect.apply(method, target, given);
        await after();
        return answer;
      };
    },
  });
}

/** Requests what a link shows in one of the ways there are. Returns the answer's text. */
type Look = (service: ServiceOver, link: URL) => Promise<string>;

const WAYS: Readonly<Record<string, Look>> = {
  'list_folder and list_folder/continue with the link': async (service, { href }) => {
    const first = await rpc(service, 'files/list_folder', { path: '', shared_link: { url: href } });
    return first.text + (await continued(service, first));
  },
  'get_shared_link_file of a path in the folder': async ({ url, token }, { href }) => {
    const argument = headerJson({ url: href, path: '/note.txt' });
    const headers = { authorization: `Bearer ${token}`, 'dropbox-api-arg': argument };
    return (await send(`${url}/2/sharing/get_shared_link_file`, { method: 'POST', headers })).text;
  },
  'the page of the folder': ({ url }, { pathname, search }) => text(`${url}${pathname}${search}`),
  'the archive of the folder': ({ url }, { pathname, searchParams }) =>
    text(`${url}${pathname}?rlkey=${searchParams.get('rlkey')}&dl=1`),
  'the page of a file in the folder': ({ url }, { pathname, search }) =>
    text(`${url}${pathname}/note.txt${search}`),
  'the bytes of a file in the folder': ({ url }, { pathname, searchParams }) =>
    text(`${url}${pathname}/note.txt?rlkey=${searchParams.get('rlkey')}&raw=1`),
};

/** Returns the text of the page after the cursor in an answer; of a refusal without a cursor, nothing. */
async function continued(service: ServiceOver, { json }: Answered): Promise<string> {
  const { cursor } = json as { cursor?: string };
  return cursor === undefined ? '' : (await rpc(service, 'files/list_folder/continue', { cursor })).text;
}

async function text(url: string): Promise<string> {
  return (await send(url, {})).text;
}

test.each(Object.keys(WAYS))(
  '%s shows nothing of another folder that takes its path meanwhile',
  async (way) => {
    const storage = await opened();
    await storage.createNamespace(NAMESPACE, 2 ** 30);
    for (const [path, bytes] of [
      ['/shared/note.txt', 'for everybody'],
      ['/private/note.txt', 'a secret'],
      ['/private/secret.txt', 'a secret'],
    ] as const)
      await storage.upload(NAMESPACE, commit(path), content(bytes));
    const swap = async (one: string, other: string) => {
      await storage.relocate(NAMESPACE, one, '/away', MOVE);
      await storage.relocate(NAMESPACE, other, one, MOVE);
      await storage.relocate(NAMESPACE, '/away', other, MOVE);
    };
    let callsLeft = 0;
    const service = await serviceOver(
      interleaved(storage, async () => {
        if (--callsLeft === 0) await swap('/shared', '/private');
      }),
    );
    try {
      const link = await linkTo(service, '/shared');
      const calm = (await WAYS[way]?.(service, link)) ?? '';
      expect(calm).toMatch(/note\.txt|for everybody/);
      for (const calls of CALLS) {
        callsLeft = calls;
        const shown = (await WAYS[way]?.(service, link)) ?? '';
        expect(shown, `after call ${calls}`).not.toMatch(/secret/);
        if (callsLeft <= 0) await swap('/private', '/shared');
      }
    } finally {
      await service.close();
    }
  },
);

test.each(['files/list_folder', 'files/list_folder/get_latest_cursor'])(
  'the cursor of %s below a link shows nothing of a folder that leaves the link meanwhile',
  async (name) => {
    const storage = await opened();
    await storage.createNamespace(NAMESPACE, 2 ** 30);
    await storage.upload(NAMESPACE, commit('/shared/sub/note.txt'), content('for everybody'));
    let callsLeft = 0;
    const service = await serviceOver(
      interleaved(storage, async () => {
        if (--callsLeft === 0) await storage.relocate(NAMESPACE, '/shared/sub', '/private', MOVE);
      }),
    );
    try {
      const { href } = await linkTo(service, '/shared');
      for (const calls of CALLS) {
        callsLeft = calls;
        const answered = await rpc(service, name, { path: '/sub', shared_link: { url: href } });
        const hasMoved = callsLeft <= 0;
        callsLeft = 0;
        const place = hasMoved ? '/private' : '/shared/sub';
        await storage.upload(NAMESPACE, commit(`${place}/secret.txt`), content('a secret'));
        const shown = /secret/.test(await continued(service, answered));
        expect([calls, shown]).toEqual([calls, !hasMoved]);
        await storage.remove(NAMESPACE, `${place}/secret.txt`);
        if (hasMoved) await storage.relocate(NAMESPACE, '/private', '/shared/sub', MOVE);
      }
    } finally {
      await service.close();
    }
  },
);

async function linkTo(service: ServiceOver, path: string): Promise<URL> {
  const { json } = await rpc(service, 'sharing/create_shared_link_with_settings', { path });
  return new URL((json as { url: string }).url);
}
