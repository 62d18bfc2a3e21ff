import type { SetTime, Times } from '../times.ts';
import { numberOf, textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';
import { fieldsOf, inPieces } from './fields.ts';

/** Set times: a hash by id. */
export function redisTimes({ connection, key }: DriveStore): Times {
  const times = key('times');
  return {
    async of(ids) {
      const found = await fieldsOf(connection, times, ids);
      return new Map([...found].map(([id, text]) => [id, timeOf(text)]));
    },
    ids: async () => textsOf(await connection.command('HKEYS', times)),
    isEmpty: async () => numberOf(await connection.command('HLEN', times)) === 0,
    async set(id, { rev, modifiedMs }) {
      await connection.command('HSET', times, id, JSON.stringify({ rev, modifiedMs }));
    },
    async forget(ids) {
      await Promise.all(inPieces(ids).map((piece) => connection.command('HDEL', times, ...piece)));
    },
  };
}

function timeOf(text: string): SetTime {
  return JSON.parse(text); // as `set` wrote it
}
