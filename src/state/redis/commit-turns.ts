import type { CommitTurnAnswer, CommitTurnStore } from '../commit-turns.ts';
import { textOf, textsOf } from './answers.ts';
import { ENTER_SCRIPT, LEAVE_SCRIPT, RENEW_SCRIPT } from './commit-turns-scripts.ts';
import type { Connection } from './connection.ts';

/** How long a turn lasts without a renewal, in ms: as long, the others wait for a gateway that was killed in its turn. */
const TURN_MS = 15_000;

/** How long a waiting gateway keeps its place without asking, in ms. */
const SILENT_MS_MAX = 2000;

/**
 * How long the first in the line waits for as many entries as the last turn had, in ms: as long as the call takes that an
 * incomplete turn costs in addition.
 */
const COMPLETE_MS = 100;

/** How long after a turn as many entries are expected again, in ms. */
const EXPECTED_MS = 5000;

/** Maximum number of entries of all batches of one turn: as many as the service takes in one call. */
const ENTRIES_MAX = 1000;

/** How long a batch and its answer are kept for a gateway that does not ask, in ms. */
const KEPT_MS = 600_000;

/** Turns: the line of those who wait, the id whose turn it is, what is expected of the next one, and a hash for each batch. */
export function redisCommitTurns(connection: Connection, namespace: string): CommitTurnStore {
  const prefix = `davgate:{commits_${namespace}}:`;
  const keys = ['line', 'seen', 'turn', 'expected'].map((name) => prefix + name);
  const batches = `${prefix}batch:`;
  return {
    async enter({ id, kind, entries, isRepeated, isGathering }) {
      const question = isRepeated ? 'repeated' : isGathering ? 'gathering' : 'first';
      // Redis has them already, and they may be long.
      const texts = isRepeated ? '' : JSON.stringify(entries);
      const batch = [texts, String(entries.length), question];
      const limits = [TURN_MS, SILENT_MS_MAX, ENTRIES_MAX, KEPT_MS].map(String);
      const gathering = [COMPLETE_MS, EXPECTED_MS].map(String);
      const words = [batches, id, ...batch, ...limits, kind, ...gathering];
      return answerOf(await connection.script(ENTER_SCRIPT, keys, words));
    },
    async renew(id) {
      await connection.script(RENEW_SCRIPT, keys, [batches, id, String(TURN_MS)]);
    },
    async leave(id, answers) {
      const told = answers.flatMap((answer) => [answer.id, answer.text]);
      await connection.script(LEAVE_SCRIPT, keys, [batches, id, String(EXPECTED_MS), ...told]);
    },
  };
}

function answerOf(answer: unknown): CommitTurnAnswer {
  const [is, ...rest] = textsOf(answer);
  switch (is) {
    case 'waiting':
      return { is, waiting: Number(rest[0]) };
    case 'lost':
      return { is };
    case 'answered':
      return { is, text: textOf(rest[0]) };
    case 'granted': {
      const ids = rest.filter((_, index) => index % 2 === 0);
      return { is, offers: ids.map((id, index) => ({ id, entries: entriesOf(rest[2 * index + 1]) })) };
    }
    default:
      throw new TypeError(`Redis answered "${is}" to the question for a turn`);
  }
}

function entriesOf(text: string | undefined): readonly string[] {
  return JSON.parse(textOf(text)); // as `enter` wrote it
}
