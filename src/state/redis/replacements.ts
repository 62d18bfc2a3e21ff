import type { Replacement, Replacements } from '../replacements.ts';
import { textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';

/** Replacements: a hash by id, with few entries. */
export function redisReplacements({ connection, key }: DriveStore): Replacements {
  const relocations = key('relocations');
  return {
    async all() {
      const texts = textsOf(await connection.command('HVALS', relocations));
      return texts.map(replacementOf).sort((one, other) => (one.id < other.id ? -1 : 1));
    },
    async note({ id, path, waitingAt, purpose, replacement }) {
      const text = JSON.stringify({ id, path, waitingAt, purpose, replacement });
      await connection.command('HSET', relocations, id, text);
    },
    async remove(id) {
      await connection.command('HDEL', relocations, id);
    },
  };
}

function replacementOf(text: string): Replacement {
  return JSON.parse(text); // as `note` wrote it
}
