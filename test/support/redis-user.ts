import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './build.ts';
import { sayToRedis, type TestRedis, type TestSentinel } from './redis.ts';

/** The commands in docs/scaling.md that give davgate an ACL user: those for servers, and those for Sentinels. */
const [FOR_SERVERS = [], FOR_SENTINELS = []] = [
  ...readFileSync(join(PROJECT_ROOT, 'docs/scaling.md'), 'utf8').matchAll(/^```\n(ACL SETUSER [^`]*)```$/gm),
].map(([, lines = '']) => lines.trim().split('\n'));

/** The commands that the user may send to a server, such as `get` or `config|get`. */
export const PERMITTED: readonly string[] = FOR_SERVERS.flatMap((line) => line.match(/(?<= \+)\S+/g) ?? []);

/** Creates the user at servers, as the document says. */
export async function createUser(servers: readonly TestRedis[]): Promise<void> {
  for (const server of servers) for (const line of FOR_SERVERS) await sayToRedis(server, line);
}

const ADMINISTRATOR = 'AUTH administrator secret';

/** Creates the user at Sentinels, as the document says, and lets them refuse clients without a login. */
export async function createSentinelUser(sentinels: readonly TestSentinel[]): Promise<void> {
  const administrator = 'ACL SETUSER administrator on >secret +@all';
  const lines = [administrator, ...FOR_SENTINELS, 'ACL SETUSER default off'];
  for (const sentinel of sentinels) for (const line of lines) await sayToRedis(sentinel, line);
}

/** Sends a command to a Sentinel that wants a login. Returns the answer. */
export async function sayToSentinel(sentinel: TestSentinel | undefined, words: string): Promise<string> {
  return (await sayToRedis(sentinel, `${ADMINISTRATOR}\r\n${words}`)).replace('+OK\r\n', '');
}

/** Returns the address of a Redis with the user and password of the document. */
export function withUser(url: string): string {
  return url.replace('://', '://davgate:PASSWORD@');
}

/** The answer of a Redis that has refused nobody a command, a key or a channel. */
export const NONE_REFUSED = '*0\r\n';
