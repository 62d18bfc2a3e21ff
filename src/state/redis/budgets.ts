import type { AccountBudget, ParallelCommits } from '../budgets.ts';
import { listOf, numberOf, textOrNothing } from './answers.ts';
import type { Connection } from './connection.ts';

/** How long the gateways believe what one of them has learned about parallel commits, in ms. */
const LEARNED_MS = 3_600_000;

/** How long no other gateway is chosen to learn it, in ms. */
const TRIAL_MS = 10_000;

/** KEYS: 1 the pause, a key that expires with it; 2 what is known of parallel commits: `accepted`, `refused` or `trial`. */
const TAKE_SCRIPT = `
return {redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2])}
`;

/** KEYS: 1 the pause. ARGV: 1 its duration in ms. A longer pause stays. */
const PAUSE_SCRIPT = `
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '', 'PX', ARGV[1]) end
return 0
`;

/** KEYS: 1 what is known of parallel commits. ARGV: 1 the news; 2 how long they are true, in ms. */
const LEARNED_SCRIPT = `
if ARGV[1] == 'refused' or redis.call('GET', KEYS[1]) ~= 'refused' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 0
`;

/** Budgets: two keys per account, by the clock of Redis. */
export function redisBudget(connection: Connection, account: string): AccountBudget {
  const pauseKey = `davgate:{account_${account}}:pause`;
  const parallelKey = `davgate:{account_${account}}:parallel-commits`;
  return {
    async take(calls) {
      const [leftMs, known] = listOf(await connection.script(TAKE_SCRIPT, [pauseKey, parallelKey], []));
      const pausedMs = Math.max(0, numberOf(leftMs));
      const parallelCommits = parallelCommitsOf(textOrNothing(known));
      return { calls: pausedMs > 0 ? 0 : calls, pausedMs, parallelCommits };
    },
    async pause(ms) {
      await connection.script(PAUSE_SCRIPT, [pauseKey], [String(Math.ceil(ms))]);
    },
    async resume() {
      await connection.command('DEL', pauseKey);
    },
    async chooseTrier() {
      return (await connection.command('SET', parallelKey, 'trial', 'NX', 'PX', String(TRIAL_MS))) !== null;
    },
    async learned(outcome) {
      await connection.script(LEARNED_SCRIPT, [parallelKey], [outcome, String(LEARNED_MS)]);
    },
  };
}

function parallelCommitsOf(known: string | undefined): ParallelCommits {
  return known === 'accepted' || known === 'refused' ? known : 'unknown';
}
