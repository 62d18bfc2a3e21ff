import { setTimeout } from 'node:timers/promises';
import { WAIT_MS } from './eventually.ts';
import { GatewayClient } from './gateway.ts';

/** Time between two requests of one user, in ms: the users need not fill the machine. */
const PAUSE_MS = 50;

/** Number of locks that a user keeps while the next file is worked on. */
export const KEPT_MAX = 2;

const LOCK_BODY = Buffer.from(
  `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>`,
);

export interface HeldLock {
  readonly path: string;
  /** The token in angle brackets. */
  readonly token: string;
}

/**
 * Users who lock a new file, write to it, refresh the lock, and release that of an older file, again and again. The requests of
 * a user go to the gateways in turn, and each is repeated as long as it is answered with 503.
 */
export class LockUsers {
  /** Answers that no failover explains. */
  readonly troubles: string[] = [];
  readonly #users: readonly LockUser[];
  #isOver = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(urls: readonly string[], count: number) {
    this.#users = Array.from({ length: count }, (_, number) => new LockUser(number, urls));
  }

  /** Returns the locks whose tokens the users have, and have not begun to release. */
  held(): readonly HeldLock[] {
    return this.#users.flatMap(({ held }) => held);
  }

  /** Returns the number of files that the slowest user has finished. */
  files(): number {
    return Math.min(...this.#users.map(({ files }) => files));
  }

  /** Returns the longest time from the first try to the success of a request that was answered with 503, in ms. */
  outageMs(): number {
    return Math.max(...this.#users.map(({ outageMs }) => outageMs));
  }

  start(): void {
    this.#running = Promise.all(this.#users.map((user) => this.#work(user)));
  }

  /** Lets each user finish its file. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    for (const user of this.#users) user.close();
  }

  async #work(user: LockUser): Promise<void> {
    try {
      while (!this.#isOver) await user.nextFile();
    } catch (error) {
      this.troubles.push(String(error));
    }
  }
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

class LockUser {
  readonly held: HeldLock[] = [];
  files = 0;
  outageMs = 0;
  readonly #number: number;
  readonly #clients: readonly GatewayClient[];
  #requests: number;

  constructor(number: number, urls: readonly string[]) {
    this.#number = number;
    this.#requests = number;
    this.#clients = urls.map((url) => new GatewayClient(url));
  }

  /** Works on another file. */
  async nextFile(): Promise<void> {
    const path = `/${this.#number}-${this.files}`;
    const timeout = { timeout: 'Second-3600' };
    // A lock whose LOCK was answered with 503 is in the way until it has been removed.
    const locking = { method: 'LOCK', path, headers: timeout, body: LOCK_BODY };
    const locked = await this.#untilDone(locking, { 423: 'wait' });
    const token = String(locked.headers['lock-token']);
    this.held.push({ path, token });
    const withToken = { if: `(${token})` };
    await this.#untilDone({ method: 'PUT', path, headers: withToken, body: Buffer.from(path) });
    await this.#untilDone({ method: 'LOCK', path, headers: { ...withToken, ...timeout } });
    const old = this.held.length > KEPT_MAX && this.held.shift();
    // An UNLOCK that was answered with 503 may have released the lock.
    if (old) await this.#untilDone(unlock(old), { 409: 'done' });
    this.files += 1;
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  /** Repeats a request until its answer is 2xx. After a 503, `late` tells what the lost answer of an earlier try explains. */
  async #untilDone(request: Request, late: Readonly<Record<number, 'done' | 'wait'>> = {}) {
    const startMs = performance.now();
    for (let tries = 0; ; tries++) {
      const answer = await this.#send(request);
      const tookMs = performance.now() - startMs;
      const outcome =
        answer.status < 300 ? 'done' : answer.status === 503 ? 'wait' : tries > 0 && late[answer.status];
      if (!outcome || tookMs > WAIT_MS)
        throw new Error(`${request.method} ${request.path}: ${answer.status} ${answer.body}`);
      await setTimeout(PAUSE_MS);
      if (outcome === 'wait') continue;
      if (tries > 0) this.outageMs = Math.max(this.outageMs, tookMs);
      return answer;
    }
  }

  #send({ method, path, headers, body }: Request) {
    this.#requests += 1;
    const client = this.#clients[this.#requests % this.#clients.length];
    if (!client) throw new Error('there is a gateway');
    return client.send(method, path, { headers, ...(body && { body }) });
  }
}

function unlock({ path, token }: HeldLock): Request {
  return { method: 'UNLOCK', path, headers: { 'lock-token': token } };
}
