import type { UploadLink, UploadLinkStore, UsedUploadLink } from '../upload-links.ts';
import { numberOf, textOrNothing, textsOf } from './answers.ts';
import type { Connection } from './connection.ts';

/** Upload links: each with a key of its own, one for its used bytes, and a hash of the tokens of each user. */
export function redisUploadLinks(connection: Connection): UploadLinkStore {
  const tokensOf = (user: string) => `davgate:upload-links:${user}`;
  // The braces make a Redis cluster keep both on one node.
  const keyOf = (tokenHash: string) => `davgate:upload-link:{${tokenHash}}`;
  const usedOf = (tokenHash: string) => `${keyOf(tokenHash)}:used`;

  const find = async (tokenHash: string): Promise<UsedUploadLink | undefined> => {
    const [text, used] = await Promise.all([
      connection.command('GET', keyOf(tokenHash)),
      connection.command('GET', usedOf(tokenHash)),
    ]);
    const known = textOrNothing(text);
    if (known === undefined) return undefined;
    const link: UploadLink = JSON.parse(known); // as `add` wrote it
    return { ...link, usedBytes: Number(textOrNothing(used) ?? 0) };
  };
  const add = (tokenHash: string, bytes: number) =>
    connection.command('INCRBY', usedOf(tokenHash), String(bytes)).then(numberOf);

  return {
    async all(user) {
      const tokens = textsOf(await connection.command('HVALS', tokensOf(user)));
      const links = await Promise.all(tokens.map(find));
      return links
        .filter((link) => link !== undefined)
        .sort((one, other) => one.createdMs - other.createdMs || (one.id < other.id ? -1 : 1));
    },
    find,
    async add(link, countMax) {
      const { user, id, tokenHash } = link;
      await connection.command('HSET', tokensOf(user), id, tokenHash);
      // Counted afterwards, because another gateway may add one at the same time.
      if (numberOf(await connection.command('HLEN', tokensOf(user))) > countMax) {
        await connection.command('HDEL', tokensOf(user), id);
        return false;
      }
      await connection.command('SET', keyOf(tokenHash), JSON.stringify(link));
      return true;
    },
    async use({ tokenHash, sizeBytesMax = Number.POSITIVE_INFINITY }, bytes) {
      if (!(await find(tokenHash))) return false;
      if ((await add(tokenHash, bytes)) <= sizeBytesMax) return true;
      await add(tokenHash, -bytes);
      return false;
    },
    async takeBack({ tokenHash }, bytes) {
      if (await find(tokenHash)) await add(tokenHash, -bytes);
    },
    async remove(user, id) {
      const tokenHash = textOrNothing(await connection.command('HGET', tokensOf(user), id));
      if (tokenHash === undefined) return false;
      await connection.command('DEL', keyOf(tokenHash), usedOf(tokenHash));
      return numberOf(await connection.command('HDEL', tokensOf(user), id)) > 0;
    },
  };
}
