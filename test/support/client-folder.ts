import { sharedDavgate } from './shared.ts';

/** A folder of the shared davgate for the tests of one client, and its content as davgate serves it. */
export interface ClientFolder {
  /** Ends with a slash. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** The value of an `Authorization` header. */
  readonly authorization: string;
  /** Returns the URL of a file or folder at `path` below the folder. */
  at(path: string): string;
  /** Resolves with the bytes of a file, or with `undefined` if there is none. */
  read(path: string): Promise<Buffer | undefined>;
}

/** Makes the folder `name`, which no other test uses, in the shared davgate. */
export async function clientFolder(name: string): Promise<ClientFolder> {
  const { url, user, password, authorization } = await sharedDavgate();
  const folder = new URL(`${name}/`, url).href;
  const headers = { authorization };
  const made = await fetch(folder, { method: 'MKCOL', headers });
  if (made.status !== 201) throw new Error(`MKCOL ${folder} was answered with ${made.status}`);
  const at = (path: string) => folder + path.split('/').map(encodeURIComponent).join('/');
  return {
    ...{ url: folder, user, password, authorization, at },
    read: async (path) => {
      const answer = await fetch(at(path), { headers });
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status === 404) return undefined;
      if (answer.status !== 200) throw new Error(`GET ${at(path)} was answered with ${answer.status}`);
      return bytes;
    },
  };
}
