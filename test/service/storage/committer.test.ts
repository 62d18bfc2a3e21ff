import { expect, onTestFinished, test } from 'vitest';
import { eachInSavepoint, inSteps, type Transaction } from '../../../src/service/storage/committer.ts';
import { conflict } from '../../../src/service/storage/errors.ts';
import { Ticks } from '../../../src/service/storage/feed/ticks.ts';
import { SqliteCommitter } from '../../../src/service/storage/sqlite-committer.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { HOME, opened, put, refusal } from './opened.ts';

/** Makes a committer over a table of numbers. */
function committer() {
  const database = new Sqlite(':memory:');
  onTestFinished(() => {
    database.close();
  });
  database.exec(`CREATE TABLE namespace (id INTEGER PRIMARY KEY, tick INTEGER); INSERT INTO namespace VALUES (1, 0);
    CREATE TABLE number (value INTEGER UNIQUE)`);
  const clock = new ManualClock();
  const transactions: Transaction[] = [];
  const ticks = new Ticks(database, clock);
  const line = new SqliteCommitter(database, ticks, clock, (transaction) => transactions.push(transaction));
  const add = database.prepare('INSERT INTO number VALUES (?)');
  const insert = (value: number) => (transaction: Transaction) => {
    transaction.changes.push({ ns: 1, key: `/${value}`, tree: false });
    add.run(value);
    return value;
  };
  const values = () => database.prepare('SELECT value FROM number ORDER BY value').pluck().all();
  return { database, clock, ticks, line, transactions, insert, values };
}

test('operations that wait together share a transaction, and a refused one is rolled back alone', async () => {
  const { line, transactions, insert, values } = committer();
  const refused = line.run((transaction) => {
    insert(2)(transaction);
    throw conflict('file');
  });
  const outcomes = await Promise.all([line.run(insert(1)), refusal(refused), line.run(insert(3))]);
  expect(outcomes).toEqual([1, 'conflict/file', 3]);
  expect(values()).toEqual([1, 3]);
  expect(transactions.map(({ changes }) => changes.map((change) => change.key))).toEqual([['/1', '/3']]);
});

test('an operation that fails for lack of space does not fail the others of its transaction', async () => {
  const { database, line, transactions, insert, values } = committer();
  database.pragma('max_page_count = 5');
  database.exec('CREATE TABLE large (bytes BLOB)');
  const large = line.run(() => database.prepare('INSERT INTO large VALUES (zeroblob(100000))').run());
  const outcomes = await Promise.all([line.run(insert(1)), refusal(large), line.run(insert(2))]);
  expect(outcomes).toEqual([1, 'write/insufficient_space', 2]);
  expect(values()).toEqual([1, 2]);
  expect(transactions.flatMap(({ changes }) => changes).map((change) => change.key)).toEqual(['/1', '/2']);
});

test('a failed transaction releases its change numbers', async () => {
  const { database, ticks, line, insert } = committer();
  await line.run(insert(1));
  const range = ticks.reserve(1, 10, 1000);
  database.pragma('max_page_count = 5');
  database.exec('CREATE TABLE large (bytes BLOB)');
  const last = ticks.last(1);
  const large = line.run((transaction) => {
    transaction.ticks.useUp(range);
    database.prepare('INSERT INTO large VALUES (zeroblob(100000))').run();
  });
  expect(await refusal(large)).toBe('write/insufficient_space');
  expect(ticks.last(1)).toBe(last);
});

test('a commit that waits longer than a second is refused with too_many_write_operations', async () => {
  const { clock, line, insert, values } = committer();
  const late = line.run(insert(1));
  const advanced = clock.advance(1001);
  const inTime = line.run(insert(2));
  await advanced;
  expect(await refusal(late)).toBe('write/too_many_write_operations');
  expect(await inTime).toBe(2);
  expect(values()).toEqual([2]);
  const punctual = line.run(insert(3));
  await clock.advance(1000);
  expect(await punctual).toBe(3);
});

test('a commit with a signal waits longer than a second, and fails with the signal’s reason', async () => {
  const { clock, line, insert, values } = committer();
  const job = new AbortController();
  const patient = line.run(insert(1), job.signal);
  const advanced = clock.advance(900_000);
  expect(await patient).toBe(1);
  await advanced;
  const late = line.run(insert(2), job.signal);
  job.abort(new Error('the job took too long'));
  expect(await refusal(late)).toBe('the job took too long');
  expect(values()).toEqual([1]);
});

test('a folder whose commit was refused for waiting too long is not made, and a later write of its path succeeds', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const folder = storage.createFolder(HOME, '/a', false);
  await clock.advance(1001);
  expect(await refusal(folder)).toBe('write/too_many_write_operations');
  expect(await refusal(() => storage.stat(HOME, '/a', true))).toBe('lookup/not_found');
  expect((await put(storage, '/a', 'x')).name).toBe('a');
});

test('a transaction ends after 30 ms of work and leaves the rest to later ones', async () => {
  const { database, clock, line, transactions, insert, values } = committer();
  const slow = (value: number) => (transaction: Transaction) => {
    void clock.advance(10);
    return insert(value)(transaction);
  };
  const numbers = Array.from({ length: 10 }, (_, index) => index);
  expect(await Promise.all(numbers.map((value) => line.run(slow(value))))).toEqual(numbers);
  const sizes = () => transactions.splice(0).map(({ changes }) => changes.length);
  expect(sizes()).toEqual([3, 3, 3, 1]);
  const entries = numbers.map((value) => value + 10);
  const outcomes = await inSteps(entries, 50, (next) =>
    line.run((transaction) =>
      eachInSavepoint(database, transaction, next, (value) => slow(value)(transaction)),
    ),
  );
  expect([outcomes, sizes()]).toEqual([entries, [3, 3, 3, 1]]);
  expect(values()).toHaveLength(20);
});

test('closing the committer waits for all accepted operations', async () => {
  const { line, insert, values } = committer();
  const taken = Array.from({ length: 1000 }, (_, index) => line.run(insert(index)));
  await line.close();
  expect(values()).toHaveLength(1000);
  expect(await Promise.all(taken)).toHaveLength(1000);
  expect(await refusal(line.run(insert(1000)))).toBe('the storage is closed');
});
