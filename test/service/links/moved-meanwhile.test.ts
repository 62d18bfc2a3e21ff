import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { headerJson, send } from '../../support/service-client.ts';
import { NAMESPACE, type ServiceOver, serviceOver } from '../../support/service-over.ts';
import { commit, body as content, opened } from '../storage/opened.ts';

const MOVE = { copy: false, autorename: false };

/** Calls of the storage after which another folder takes the path of the linked one: more than a request makes. */
const CALLS = [1, 2, 3, 4, 5];

const READS: ReadonlySet<string | symbol> = new Set([
  'stat',
  'statAll',
  'statWithFolders',
  'list',
  'listAll',
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
  'list_folder with the link': async ({ url, token }, { href }) => {
    const argument = JSON.stringify({ path: '', shared_link: { url: href } });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: argument };
    return (await send(`${url}/2/files/list_folder`, init)).text;
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

async function linkTo({ url, token }: ServiceOver, path: string): Promise<URL> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify({ path }) };
  const { json } = await send(`${url}/2/sharing/create_shared_link_with_settings`, init);
  return new URL((json as { url: string }).url);
}
