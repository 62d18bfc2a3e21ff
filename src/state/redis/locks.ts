import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import type { Lock, Locks } from '../locks.ts';
import { numberOf, textOrNothing, textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';
import { COVERING, CREATE, REFRESH, RELEASE, WITHIN } from './locks-scripts.ts';

/** A lock that conflicts is looked for and the new one entered in one script, whichever gateway asks. */
export function redisLocks({ connection, key }: DriveStore): Locks {
  const keys = [key('locks'), key('lock-places'), key('lock-ends')];
  const run = (text: string, ...words: string[]) => connection.script(text, keys, words);
  const within = async (nowMs: number, path: Path) =>
    alive(nowMs, locksOf(textsOf(await run(WITHIN, keyOf(path)))));

  return {
    async create(nowMs, wanted) {
      const { timeoutSeconds, expiresMs, ...lasting } = wanted;
      const [conflict] = locksOf(
        textsOf(
          await run(
            CREATE,
            ...[String(nowMs), wanted.token, wanted.scope, wanted.depth, String(expiresMs)],
            ...[JSON.stringify(lasting), JSON.stringify({ timeoutSeconds, expiresMs })],
            ...placesAround(wanted.root),
          ),
        ),
      );
      return conflict ? { conflict } : wanted;
    },
    async refresh(nowMs, token, { timeoutSeconds, expiresMs }) {
      const span = JSON.stringify({ timeoutSeconds, expiresMs });
      const lasting = textOrNothing(await run(REFRESH, String(nowMs), token, String(expiresMs), span));
      return lasting === undefined ? undefined : lockOf(lasting, span);
    },
    release: async (token) => numberOf(await run(RELEASE, token)) === 1,
    covering: async (nowMs, path) =>
      alive(nowMs, locksOf(textsOf(await run(COVERING, ...placesAround(path))))),
    within,
    all: (nowMs) => within(nowMs, ROOT),
  };
}

/** The key of `path`, and those of all folders above it. */
function placesAround(path: Path): string[] {
  const keys = [keyOf(path)];
  for (let folder = path; folder !== ROOT; ) {
    folder = parentOf(folder);
    keys.push(keyOf(folder));
  }
  return keys;
}

/** From `lasting, span, lasting, span, …`. */
function locksOf(texts: readonly string[]): Lock[] {
  const locks: Lock[] = [];
  for (let index = 0; index < texts.length; index += 2)
    locks.push(lockOf(texts[index] ?? '', texts[index + 1] ?? ''));
  return locks;
}

function lockOf(lasting: string, span: string): Lock {
  return { ...JSON.parse(lasting), ...JSON.parse(span) }; // as `create` and `refresh` wrote them
}

function alive(nowMs: number, locks: readonly Lock[]): readonly Lock[] {
  return locks.filter((lock) => lock.expiresMs > nowMs);
}
