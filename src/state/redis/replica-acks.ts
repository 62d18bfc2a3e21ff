import { setImmediate } from 'node:timers/promises';
import { type Clock, type Instant, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { listOf, numberOf } from './answers.ts';
import type { Connection } from './connection.ts';
import { isWithoutAnswer } from './failure.ts';

/** How long a lock waits for a replica, in ms. Meanwhile the connection carries no other answer. */
const ACK_MS_MAX = 100;

/** Time between two questions whether Redis has replicas, in ms. */
const LOOK_EVERY_MS = 10_000;

export interface ReplicaAcksDeps {
  readonly connection: Connection;
  /** A key of what is waited for, by which a cluster finds the primary. */
  readonly key: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The default is `ACK_MS_MAX`. */
  readonly ackMsMax?: number;
}

/**
 * Waits until a replica has what Redis has just answered, so that a failover to it loses nothing of that. A replica that
 * does not acknowledge in time is not waited for until the next look, because each wait delays all requests.
 */
export class ReplicaAcks {
  readonly #deps: ReplicaAcksDeps;
  #hasReplica = false;
  #nextLook: Instant = LONG_AGO;
  #waiting: Promise<void> | undefined;
  #isWarned = false;

  constructor(deps: ReplicaAcksDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when a replica has acknowledged all changes whose answers have arrived, or none will in time. Rejects with
   * `StateUnavailable` when Redis goes away before: a failover may have lost them. A wait that is under way covers them:
   * Redis answers in order, so it was sent after them.
   */
  async confirm(): Promise<void> {
    // An older wait whose answer came together with that to the change is over then.
    await setImmediate();
    this.#waiting ??= this.#confirmed()
      .catch((error: unknown) => {
        this.#doWithout();
        // A Redis that refuses the questions is used as one without a replica.
        if (!isWithoutAnswer(error)) return;
        this.#nextLook = LONG_AGO;
        throw error;
      })
      .finally(() => {
        this.#waiting = undefined;
      });
    return this.#waiting;
  }

  async #confirmed(): Promise<void> {
    const { connection, key, clock, log, ackMsMax = ACK_MS_MAX } = this.#deps;
    const command = connection.primaryOf(key);
    if (remainingMs(clock, this.#nextLook) <= 0) {
      this.#nextLook = instantIn(clock, LOOK_EVERY_MS);
      this.#hasReplica = hasReplica(listOf(await command('ROLE')));
    }
    if (!this.#hasReplica) return;
    const acknowledged = numberOf(await command('WAIT', '1', String(ackMsMax))) > 0;
    const redis = connection.shownUrl;
    if (!acknowledged) this.#doWithout();
    if (!acknowledged && !this.#isWarned)
      log.warn('no replica acknowledges new locks in time; a failover may lose them', { redis, ackMsMax });
    else if (acknowledged && this.#isWarned) log.info('a replica acknowledges new locks again', { redis });
    this.#isWarned = !acknowledged;
  }

  #doWithout(): void {
    this.#hasReplica = false;
  }
}

/** Reads the answer to ROLE: `master`, the offset, and the connected replicas. */
function hasReplica([role, , replicas]: readonly unknown[]): boolean {
  return role === 'master' && listOf(replicas).length > 0;
}
