import { expect, test } from 'vitest';
import { HOME, put } from './opened.ts';
import { openedShared, postgresTests } from './opened-shared.ts';

const { newPlace } = postgresTests();

test('60 first calls for a namespace that come together share their lookups', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place);
  await put(one, '/f', 'text');
  const { storage: other, pool } = await openedShared(place);
  let statements = 0;
  pool.on('acquire', () => {
    statements += 1;
  });
  await Promise.all(Array.from({ length: 60 }, () => other.stat(HOME, '/f', false)));
  expect(statements).toBeLessThan(20);
});
