import { type Intents, intentOfText, textOfIntent } from '../intents.ts';
import { textOrNothing, textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';

/** Intents: a hash by id, with few entries. */
export function redisIntents({ connection, key }: DriveStore): Intents {
  const intents = key('intents');
  return {
    ids: async () => textsOf(await connection.command('HKEYS', intents)),
    async get(id) {
      const text = textOrNothing(await connection.command('HGET', intents, id));
      return text === undefined ? undefined : intentOfText(text);
    },
    async note(intent) {
      await connection.command('HSET', intents, intent.id, textOfIntent(intent));
    },
    async remove(ids) {
      if (ids.length > 0) await connection.command('HDEL', intents, ...ids);
    },
  };
}
