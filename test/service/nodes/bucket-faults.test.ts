import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { effort, testSeed } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import { type BucketFault, startMemoryBucket } from '../../support/memory-bucket.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { type Answered, type Callable, headerJson, send } from '../../support/service-client.ts';
import { UNANSWERED } from './answers.ts';
import { Nodes } from './nodes.ts';
import { ABSENT, type FileStore, type Part, VersionedFiles } from './versioned-files.ts';

/** How often the store goes through all its troubles. */
const ROUNDS = effort(1);

const WRITERS = 4;
const READERS = 4;

/** Calls that are acknowledged while the store works, and refused while it does not, before that changes. */
const ACKNOWLEDGED = 40;
const REFUSED = 3;

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const FAULTS: readonly BucketFault[] = [
  ...(['reset', 'lost-answer', 'late', 'wrong-byte', 'cut'] as const),
  { status: 503, code: 'SlowDown' },
  { status: 500, code: 'InternalError' },
  { status: 429, code: 'TooManyRequests' },
];

/** Share of the requests that fail, or a store that hangs. */
type Weather = number | 'hangs';

test(`an object store that resets, refuses, delays, falsifies and forgets at random, and hangs, in ${ROUNDS} rounds: three nodes lose no acknowledged write, send no wrong byte, and each refusal is one that a client repeats`, async () => {
  const random = randomOf(testSeed());
  const bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const place = { metadata: await postgres.newDatabase(), blocks: bucket.access };
  const nodes = await Nodes.started(3, place);
  let weather: Weather = 0.2;
  bucket.fault = () => {
    if (weather === 'hangs') return 'silent';
    return random() < weather ? FAULTS[Math.floor(random() * FAULTS.length)] : undefined;
  };

  const over = new AbortController();
  const files = Array.from({ length: WRITERS }, (_, index) => new VersionedFiles(`w${index}`));
  const sum = (count: (one: VersionedFiles) => number) => files.reduce((all, one) => all + count(one), 0);
  let verified = 0;
  const work = Promise.all([
    ...files.map(async (own, index) => {
      const store = new PatientStore(nodes.inTurn(index));
      for (let count = 0; !over.signal.aborted; count++) await own.write(store, count);
    }),
    ...Array.from({ length: READERS }, async (_, index) => {
      const store = new PatientStore(nodes.inTurn(index));
      while (!over.signal.aborted) {
        const [start, end] = [random() / 2, 0.5 + random() / 2];
        const own = files[Math.floor(random() * WRITERS)];
        if (await own?.verify(store, Math.floor(random() * 4), { start, end })) verified += 1;
        await pause(random() * 50);
      }
    }),
    (async () => {
      while (!over.signal.aborted) {
        await pause(random() * 500);
        bucket.settle();
      }
    })(),
  ]);
  // It is awaited after the next change.
  work.catch(() => undefined);
  const until = async (count: () => number, more: number) => {
    const wanted = count() + more;
    await Promise.race([work, eventually(() => expect(count()).toBeGreaterThanOrEqual(wanted))]);
  };
  for (let round = 0; round < ROUNDS; round++)
    for (const trouble of [0.9, 'hangs'] as const) {
      await until(() => sum((one) => one.acknowledged), ACKNOWLEDGED);
      weather = trouble;
      await until(() => sum((one) => one.unanswered), REFUSED);
      weather = 0.2;
    }
  await until(() => sum((one) => one.acknowledged), ACKNOWLEDGED);
  over.abort();
  await work;

  bucket.fault = () => undefined;
  bucket.settle();
  const fresh = await Nodes.started(1, place);
  for (const own of files)
    for (const node of [...nodes.all, ...fresh.all]) await own.verifyAll(new PatientStore(node));
  process.stdout.write(
    `faults of a bucket: ${sum((one) => one.acknowledged)} writes acknowledged, ${sum((one) => one.unanswered)} refused, ${verified} reads\n`,
  );
});

/** The files of an account. Every failed call must be one that a client repeats. */
class PatientStore implements FileStore {
  constructor(private readonly nodes: Callable) {}

  async write(path: string, text: string): Promise<typeof UNANSWERED | 'done'> {
    const answer = await this.#call('files/upload', { path, mode: 'overwrite' }, {}, text);
    return answer === UNANSWERED ? UNANSWERED : 'done';
  }

  remove(): never {
    throw new Error('nothing is removed');
  }

  async read(path: string, { start, end }: Part): Promise<string | typeof ABSENT | typeof UNANSWERED> {
    const answer = await this.#call('files/download', { path }, { range: `bytes=${start}-${end - 1}` }, null);
    if (answer === UNANSWERED) return UNANSWERED;
    return answer.status === 409 ? ABSENT : answer.text;
  }

  async #call(
    name: string,
    argument: object,
    headers: Readonly<Record<string, string>>,
    body: string | null,
  ): Promise<Answered | typeof UNANSWERED> {
    const { url, token } = this.nodes;
    let answer: Answered;
    try {
      answer = await send(`${url}/2/${name}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/octet-stream',
          'dropbox-api-arg': headerJson(argument),
          ...headers,
        },
        body,
      });
    } catch (failure) {
      // A download whose connection is ended, because its next block cannot be had.
      if (failure instanceof TypeError && body === null) return UNANSWERED;
      throw failure;
    }
    const { status, text } = answer;
    if (status === 200 || status === 206) return answer;
    if (status === 409 && text.includes('path/not_found')) return answer;
    // A block that came wrong twice is an internal error, and right the next time.
    if (status === 500 && body === null) return UNANSWERED;
    expect([status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    return UNANSWERED;
  }
}

/** Returns numbers from 0 to 1 that depend on the seed alone. */
function randomOf(seed: number): () => number {
  process.stdout.write(`faults of a bucket: seed ${seed}\n`);
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
