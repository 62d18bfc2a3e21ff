import type { AppPassword, AppPasswordStore } from '../app-passwords.ts';
import { listOf, numberOf, textOf, textsOf } from './answers.ts';
import type { Connection } from './connection.ts';

/**
 * App passwords: a hash by id for each user, and a second one with the times of their last use, so that a use never restores
 * a password that another gateway has just removed.
 */
export function redisAppPasswords(connection: Connection): AppPasswordStore {
  // The braces make a Redis cluster keep both on one node.
  const keyOf = (user: string) => `davgate:app-passwords:{${user}}`;
  const usesOf = (user: string) => `${keyOf(user)}:uses`;
  return {
    async all(user) {
      const [passwords, uses] = await Promise.all([
        connection.command('HVALS', keyOf(user)),
        connection.command('HGETALL', usesOf(user)),
      ]);
      const times = pairsOf(uses);
      return textsOf(passwords)
        .map((text): AppPassword => {
          const password: AppPassword = JSON.parse(text); // as `add` wrote it
          const usedMs = times.get(password.id);
          return usedMs === undefined ? password : { ...password, usedMs };
        })
        .sort((one, other) => one.createdMs - other.createdMs || (one.id < other.id ? -1 : 1));
    },
    async add(user, { id, name, hash, createdMs }, countMax) {
      const text = JSON.stringify({ id, name, hash, createdMs });
      await connection.command('HSET', keyOf(user), id, text);
      // Counted afterwards, because another gateway may add one at the same time.
      if (numberOf(await connection.command('HLEN', keyOf(user))) <= countMax) return true;
      await connection.command('HDEL', keyOf(user), id);
      return false;
    },
    async use(user, id, usedMs) {
      await connection.command('HSET', usesOf(user), id, String(usedMs));
    },
    async remove(user, id) {
      const removed = numberOf(await connection.command('HDEL', keyOf(user), id));
      await connection.command('HDEL', usesOf(user), id);
      return removed > 0;
    },
  };
}

/** Returns the fields of a hash. */
function pairsOf(answer: unknown): ReadonlyMap<string, number> {
  const texts = listOf(answer).map(textOf);
  const pairs = new Map<string, number>();
  for (let index = 0; index + 1 < texts.length; index += 2)
    pairs.set(texts[index] ?? '', Number(texts[index + 1]));
  return pairs;
}
