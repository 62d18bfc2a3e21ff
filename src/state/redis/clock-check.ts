import { type Clock, elapsedMs } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { textsOf } from './answers.ts';
import type { Connection } from './connection.ts';

/** Difference to the clock of Redis that is logged, in ms. */
const DIFFERENCE_MS_MAX = 1_000;
/** Time between two comparisons, in ms. */
const COMPARE_EVERY_MS = 60_000;

export interface ClockCheckDeps {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Compares the clock of this machine with that of Redis, which the gateways have in common, and warns when they differ.
 * Locks hold nevertheless; times that gateways write for each other, like those of files, do not fit together.
 */
export class ClockCheck {
  readonly #deps: ClockCheckDeps;
  readonly #closed = new AbortController();
  #isWarned = false;

  constructor(deps: ClockCheckDeps) {
    this.#deps = deps;
  }

  /** Compares the clocks now, and then every minute until `close`. */
  async start(): Promise<void> {
    await this.#compare();
    // Rejects only when its signal aborts.
    this.#repeat(this.#closed.signal).catch(() => {});
  }

  close(): void {
    this.#closed.abort();
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(COMPARE_EVERY_MS, signal);
      // While Redis is away, there is nothing to compare.
      await this.#compare().catch(() => {});
    }
  }

  async #compare(): Promise<void> {
    const { connection, clock, log } = this.#deps;
    const asked = clock.instant();
    const [seconds, microseconds] = textsOf(await connection.command('TIME')).map(Number);
    const ownMs = clock.now();
    const redisMs = (seconds ?? 0) * 1_000 + (microseconds ?? 0) / 1_000;
    // Redis read its clock at some moment since the question.
    const aheadMs = ownMs - redisMs;
    const slackMs = elapsedMs(clock, asked);
    const isOff = aheadMs < -DIFFERENCE_MS_MAX || aheadMs - slackMs > DIFFERENCE_MS_MAX;
    if (isOff && !this.#isWarned)
      log.warn(
        'the clock of this machine differs from that of Redis; synchronise both, for example with chrony',
        {
          redis: connection.shownUrl,
          aheadSeconds: Math.round(aheadMs / 1_000),
        },
      );
    else if (!isOff && this.#isWarned)
      log.info('the clock of this machine agrees with that of Redis again', { redis: connection.shownUrl });
    this.#isWarned = isOff;
  }
}
