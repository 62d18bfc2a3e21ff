import { randomUUID } from 'node:crypto';
import type { ChangeStream, StreamEvent } from '../change-stream.ts';
import { listOf, numberOf, textOf, textOrNothing } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';

/** Approximate number of events that a stream keeps: a gateway that reads every second misses none. */
const EVENTS_MAX = 1_024;

/** Maximum number of events in one answer. */
const PAGE_MAX = 500;

/** Creates the stream of a drive's changes on a stream of Redis, whose ids are the positions. */
export function redisChangeStream({ connection, key }: DriveStore): ChangeStream {
  // Another one after a restart, which knows nothing of what it had told before.
  const gateway = randomUUID();
  const [events, epoch, cursor] = [key('changes'), key('changes-epoch'), key('feed-cursor')];
  const [turn, up] = [key('feed-turn'), key('feed-up')];
  /** The lifetime of the stream: another one begins when Redis has lost its data. */
  let known: string | undefined;

  return {
    gateway,
    async add(text) {
      const words = [String(EVENTS_MAX), randomUUID(), gateway, text];
      return numberOf(await connection.script(ADD, [events, epoch], words));
    },
    async after(position) {
      const words = [randomUUID(), position === undefined ? '' : String(position), String(PAGE_MAX)];
      const answer = listOf(await connection.script(AFTER, [events, epoch, up], words));
      const [lifetime, end, isUp, ...fields] = answer;
      const found = eventsOf(fields);
      const isOther = known !== undefined && known !== textOf(lifetime);
      known = textOf(lifetime);
      const first = found[0]?.position ?? numberOf(end) + 1;
      const isLost = isOther || (position !== undefined && first !== position + 1);
      return { events: found, end: numberOf(end), isLost, isFeedUp: numberOf(isUp) === 1 };
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
        const words = [String(EVENTS_MAX), randomUUID(), gateway, text, from ?? '', to];
        return numberOf(await connection.script(ADD_PAGE, [events, epoch, cursor], words)) > 0;
      },
    },
  };
}

/** Parses `position, gateway, text, position, gateway, text, …`. */
function eventsOf(fields: readonly unknown[]): readonly StreamEvent[] {
  const found: StreamEvent[] = [];
  for (let index = 0; index < fields.length; index += 3)
    found.push({
      position: numberOf(fields[index]),
      gateway: textOf(fields[index + 1]),
      text: textOf(fields[index + 2]),
    });
  return found;
}

// The stream is never empty once it has an event, so its last id tells the next position.
const STREAM_LUA = `
local function position_of(id) return tonumber(string.match(id, '^%d+')) end
local function id_of(position) return string.format('%d-1', position) end
local function end_of(events)
  local last = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
  return last and position_of(last[1]) or 0
end
local function add(events, epoch, events_max, lifetime, gateway, text)
  redis.call('SET', epoch, lifetime, 'NX')
  local position = end_of(events) + 1
  redis.call('XADD', events, 'MAXLEN', '~', events_max, id_of(position), 'gateway', gateway, 'text', text)
  return position
end`;

const ADD = `${STREAM_LUA}
return add(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])`;

const ADD_PAGE = `${STREAM_LUA}
if (redis.call('GET', KEYS[3]) or '') ~= ARGV[5] then return 0 end
redis.call('SET', KEYS[3], ARGV[6])
return add(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])`;

const AFTER = `${STREAM_LUA}
-- A Redis whose memory is full refuses even a SET that would change nothing.
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SET', KEYS[2], ARGV[1]) end
local last = end_of(KEYS[1])
local answer = { redis.call('GET', KEYS[2]), last, redis.call('EXISTS', KEYS[3]) }
if ARGV[2] == '' or tonumber(ARGV[2]) >= last then return answer end
for _, event in ipairs(redis.call('XRANGE', KEYS[1], id_of(tonumber(ARGV[2]) + 1), '+', 'COUNT', ARGV[3])) do
  answer[#answer + 1] = position_of(event[1])
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
