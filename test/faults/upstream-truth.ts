import { isDeepStrictEqual } from 'node:util';
import type { TestService } from '../support/service.ts';
import { type Answered, headerJson, rpc } from '../support/service-client.ts';

/** Maximum number of tries of a call: more than any test's faults refuse in a row. */
const TRIES_MAX = 1000;

interface Listed {
  readonly entries: readonly {
    readonly '.tag': string;
    readonly path_display: string;
    readonly content_hash?: string;
  }[];
  readonly cursor: string;
  readonly has_more: boolean;
}

/** Returns the content hash, or `folder`, of each entry that the service stores below `folder`, by path. */
export async function storedTree(service: TestService, folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  let page = await callUntilAnswered(service, 'files/list_folder', { path: folder, recursive: true });
  for (;;) {
    for (const entry of page.entries)
      if (entry['.tag'] !== 'deleted' && entry.path_display !== folder)
        found[entry.path_display] = entry.content_hash ?? 'folder';
    if (!page.has_more) return found;
    page = await callUntilAnswered(service, 'files/list_folder/continue', { cursor: page.cursor });
  }
}

/** Returns the bytes of a file at the service; throws unless it answers 200. */
export async function storedBytes(service: TestService, path: string): Promise<Buffer> {
  const response = await fetch(`${service.url}/2/files/download`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'dropbox-api-arg': headerJson({ path }) },
  });
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return Buffer.from(await response.arrayBuffer());
}

/** A hash, a size or `folder` for each path. */
export type Tree = Readonly<Record<string, string | number>>;

export function isSame(one: Tree, other: Tree): boolean {
  return isDeepStrictEqual(one, other);
}

async function callUntilAnswered(service: TestService, name: string, argument: object): Promise<Listed> {
  let last: Answered | undefined;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    last = await rpc(service, name, argument).catch(() => undefined);
    if (last?.status === 200) return last.json as Listed;
    if (last && last.status < 500 && last.status !== 429) break;
  }
  throw new Error(`${name} ${JSON.stringify(argument)}: ${last?.status} ${last?.text}`);
}
