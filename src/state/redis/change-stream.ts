import { randomInt, randomUUID } from 'node:crypto';
import type { ChangeStream, StreamEvent, StreamPosition } from '../change-stream.ts';
import { listOf, numberOf, textOf, textOrNothing } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';

/** Approximate number of events that a stream keeps: a gateway that reads every second misses none. */
const EVENTS_MAX = 1_024;

/** Maximum number of events in one answer. */
const PAGE_MAX = 500;

/** Creates the stream of a drive's changes on a stream of Redis, whose ids are `number-nonce`. */
export function redisChangeStream({ connection, key }: DriveStore): ChangeStream {
  // Another one after a restart, which knows nothing of what it had told before.
  const gateway = randomUUID();
  const [events, epoch, cursor] = [key('changes'), key('changes-epoch'), key('feed-cursor')];
  const [turn, up] = [key('feed-turn'), key('feed-up')];
  const newEvent = (text: string) => [randomUUID(), String(EVENTS_MAX), newNonce(), gateway, text];

  return {
    gateway,
    async add(text, read) {
      const answer = listOf(await connection.script(ADD, [events, epoch], [...newEvent(text), idOf(read)]));
      const [lifetime, id, before] = answer;
      return { position: positionOf(lifetime, id), before: positionOf(lifetime, before) };
    },
    async after(read) {
      const words = [randomUUID(), idOf(read), String(PAGE_MAX)];
      const answer = listOf(await connection.script(AFTER, [events, epoch, up], words));
      const [lifetime, last, isUp, ...fields] = answer;
      const found = eventsOf(lifetime, fields);
      const end = positionOf(lifetime, last);
      const first = found[0]?.position.number ?? end.number + 1;
      const isLost = read !== undefined && (read.lifetime !== end.lifetime || first !== read.number + 1);
      return { events: found, end, isLost, isFeedUp: numberOf(isUp) === 1 };
    },
    feed: {
      async takeTurn(leaseMs, { isUp }) {
        const words = [gateway, String(leaseMs), isUp ? '1' : '0'];
        return numberOf(await connection.script(TAKE_TURN, [turn, up], words)) === 1;
      },
      async endTurn() {
        await connection.script(END_TURN, [turn, up], [gateway]);
      },
      cursor: async () => textOrNothing(await connection.command('GET', cursor)),
      async add(from, to, text) {
        const words = [...newEvent(text), from ?? '', to];
        return numberOf(await connection.script(ADD_PAGE, [events, epoch, cursor], words)) === 1;
      },
    },
  };
}

/** Returns the nonce of a new event: a random number greater than 0. */
function newNonce(): string {
  return String(randomInt(1, 2 ** 48 - 1));
}

/** Returns the id of the event at a position. */
function idOf(position: StreamPosition | undefined): string {
  return position ? `${position.number}-${position.nonce}` : '';
}

function positionOf(lifetime: unknown, id: unknown): StreamPosition {
  const [number, nonce = ''] = textOf(id).split('-');
  return { lifetime: textOf(lifetime), number: Number(number), nonce };
}

/** Parses `id, gateway, text, id, gateway, text, …`. */
function eventsOf(lifetime: unknown, fields: readonly unknown[]): readonly StreamEvent[] {
  const found: StreamEvent[] = [];
  for (let index = 0; index < fields.length; index += 3)
    found.push({
      position: positionOf(lifetime, fields[index]),
      gateway: textOf(fields[index + 1]),
      text: textOf(fields[index + 2]),
    });
  return found;
}

// The stream is never empty once it has an event, so its last id tells the next number. `0-0` is before the first event.
const STREAM_LUA = `
local function number_of(id) return tonumber(string.match(id, '^%d+')) end
local function last_of(events)
  local last = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
  return last and last[1] or '0-0'
end
-- Begins another lifetime if Redis has lost the event that a gateway had read last: others may have missed lost ones.
local function check(events, epoch, lifetime, read)
  if read == '' then return end
  local found = redis.call('XREVRANGE', events, string.match(read, '^%d+'), '-', 'COUNT', 1)[1]
  local is_ahead = number_of(read) > number_of(last_of(events))
  if is_ahead or found and found[1] ~= read then redis.call('SET', epoch, lifetime) end
end
local function add(events, epoch, lifetime, events_max, nonce, gateway, text)
  redis.call('SET', epoch, lifetime, 'NX')
  local id = string.format('%d-%s', number_of(last_of(events)) + 1, nonce)
  redis.call('XADD', events, 'MAXLEN', '~', events_max, id, 'gateway', gateway, 'text', text)
  return id
end`;

const ADD = `${STREAM_LUA}
check(KEYS[1], KEYS[2], ARGV[1], ARGV[6])
local before = last_of(KEYS[1])
local id = add(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
return { redis.call('GET', KEYS[2]), id, before }`;

const ADD_PAGE = `${STREAM_LUA}
if (redis.call('GET', KEYS[3]) or '') ~= ARGV[6] then return 0 end
redis.call('SET', KEYS[3], ARGV[7])
add(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
return 1`;

const AFTER = `${STREAM_LUA}
-- A Redis whose memory is full refuses even a SET that would change nothing.
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SET', KEYS[2], ARGV[1]) end
check(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
local last = last_of(KEYS[1])
local answer = { redis.call('GET', KEYS[2]), last, redis.call('EXISTS', KEYS[3]) }
if ARGV[2] == '' or number_of(ARGV[2]) >= number_of(last) then return answer end
local first = string.format('%d-0', number_of(ARGV[2]) + 1)
for _, event in ipairs(redis.call('XRANGE', KEYS[1], first, '+', 'COUNT', ARGV[3])) do
  answer[#answer + 1] = event[1]
  answer[#answer + 1] = event[2][2]
  answer[#answer + 1] = event[2][4]
end
return answer`;

const TAKE_TURN = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
-- A Redis whose memory is full extends a turn, and refuses to SET it again.
if redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 0 then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
if ARGV[3] ~= '1' then redis.call('DEL', KEYS[2])
elseif redis.call('PEXPIRE', KEYS[2], ARGV[2]) == 0 then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2]) end
return 1`;

const END_TURN = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1], KEYS[2]) end
return 1`;
