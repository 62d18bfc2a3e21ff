import { describe, expect, test } from 'vitest';
import { put, rpc } from '../../support/service-client.ts';
import { type Checked, foundIn, sharedChecks } from './checked.ts';

const checked = sharedChecks();

const WRONG_COUNTS = `
  UPDATE davgate.holding SET revisions = revisions + 7;
  UPDATE davgate.holding SET files = 9 WHERE content = (
    SELECT content FROM davgate.revision WHERE name = 'small.txt');
  UPDATE davgate.namespace SET used_bytes = 12345`;

const usage = async (service: Awaited<ReturnType<Checked['start']>>) =>
  ((await rpc(service, 'users/get_space_usage', null)).json as { used: number }).used;

describe('repair of a service on PostgreSQL', () => {
  test('a check without repair changes nothing', async () => {
    const data = await checked();
    await data.sql(WRONG_COUNTS);
    const first = await foundIn(data);
    expect(first.length).toBeGreaterThan(3);
    expect(await foundIn(data)).toEqual(first);
  });

  test('a repair corrects counts, and services that run take them over', async () => {
    const data = await checked();
    const service = await data.start();
    const before = await usage(service);
    await data.sql(WRONG_COUNTS);
    const told = await foundIn(data);
    const repaired = await foundIn(data, { repairs: true });
    expect([...repaired].sort()).toEqual(told.map((line) => `${line} (repaired)`).sort());
    expect(await foundIn(data)).toEqual([]);
    expect(await usage(service)).toEqual(before);
    await put(service, '/photos/Large.jpg', 'replaced');
    await put(service, '/later.txt', 'later');
    expect(await foundIn(data)).toEqual([]);
  });

  test('a repair corrects a wrong sum alone', async () => {
    const data = await checked();
    await data.sql('UPDATE davgate.namespace SET used_bytes = used_bytes + 1');
    const line = `${data.email}:: its used space is wrong`;
    expect(await foundIn(data, { repairs: true })).toEqual([`${line} (repaired)`]);
    expect(await foundIn(data)).toEqual([]);
  });

  test('a repair counts a content again whose count has been lost', async () => {
    const data = await checked();
    await data.sql('DELETE FROM davgate.holding');
    const lines = await foundIn(data, { repairs: true });
    expect(lines.filter((line) => !line.endsWith('(repaired)'))).not.toEqual([]);
    expect(await foundIn(data)).toEqual([]);
  });

  test('a repair corrects the key of a path, but not that of a second row of the path', async () => {
    const place = `'\\x00112233445566778899aabbccddeeff'`;
    const data = await checked();
    await data.sql(`UPDATE davgate.entry SET place = ${place} WHERE name = 'small.txt'`);
    const line = `${data.email}:/small.txt: its row in the table entry is not where its path says`;
    expect(await foundIn(data, { repairs: true })).toEqual([`${line} (repaired)`]);
    expect(await foundIn(data)).toEqual([]);
    await data.sql(`INSERT INTO davgate.entry SELECT ns, ${place}, parent, name_key, name, path, id, seq,
      revision, returned, version FROM davgate.entry WHERE name = 'small.txt'`);
    expect(await foundIn(data, { repairs: true })).toEqual([line]);
  });

  test('a repair leaves contents without a file, because nothing else may be left of it', async () => {
    const data = await checked();
    await data.sql(`DELETE FROM davgate.revision WHERE name = 'small.txt'`);
    await data.sql(`DELETE FROM davgate.entry WHERE name = 'small.txt'`);
    const told = await foundIn(data);
    expect(told).toContain(`${data.email}:(no file): the use count of its content is wrong`);
    expect(await foundIn(data, { repairs: true })).toContain(
      `${data.email}:(no file): the use count of its content is wrong`,
    );
  });

  test('a repair of a namespace with a row that cannot be loaded counts nothing again', async () => {
    const data = await checked();
    await data.sql('ALTER TABLE davgate.revision ALTER COLUMN id DROP NOT NULL');
    await data.sql(`UPDATE davgate.revision SET id = NULL WHERE name = 'small.txt'`);
    const told = await foundIn(data);
    expect(told.some((line) => line.includes('count of its content is wrong'))).toBe(true);
    expect(await foundIn(data, { repairs: true })).toEqual(told);
  });
});
