import { afterEach } from 'vitest';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import type { LogFields } from '../../src/util/log.ts';
import { ManualClock } from './manual-clock.ts';
import { startRedis, type TestRedis } from './redis.ts';

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields | undefined;
}

export interface OpenedState {
  readonly state: State;
  readonly clock: ManualClock;
  readonly lines: readonly LogLine[];
  /** Resolves when a line of this event has been logged. */
  logged(event: string): Promise<void>;
}

export interface RedisTests {
  /** Closes something after the test, before everything that was opened earlier. */
  closing(close: () => Promise<void>): void;
  /** Starts a Redis that ends with the test. */
  redisWith(...settings: string[]): Promise<TestRedis>;
  /** Opens the state in a Redis, on a clock of its own; closed with the test. */
  open(url: string, options?: { readonly isVolatile: boolean }): Promise<OpenedState>;
}

/** Starts Redis and opens states for the tests of one file, and closes them after each test. */
export function redisTests(): RedisTests {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  return {
    closing: (close) => void closers.push(close),
    async redisWith(...settings) {
      const redis = await startRedis(settings);
      closers.push(() => redis.close());
      return redis;
    },
    async open(url, options) {
      const clock = new ManualClock();
      const { log, lines, logged } = watchedLog();
      const state = await openRedisState({ url, clock, log, ...options });
      closers.push(() => clock.during(state.close()));
      return { state, clock, lines, logged };
    },
  };
}

/** A log that keeps its lines. */
function watchedLog() {
  const lines: LogLine[] = [];
  const watchers: (() => void)[] = [];
  const note = (level: string) => (event: string, fields?: LogFields) => {
    // A manual clock does not agree with that of Redis.
    if (event.startsWith('the clock of this machine')) return;
    lines.push({ level, event, fields });
    for (const watcher of watchers.splice(0)) watcher();
  };
  return {
    log: { info: note('info'), warn: note('warn'), error: note('error') },
    lines,
    async logged(event: string) {
      while (!lines.some((line) => line.event === event))
        await new Promise<void>((resolve) => watchers.push(resolve));
    },
  };
}
