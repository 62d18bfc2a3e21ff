import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT_ROOT } from '../../support/build.ts';

test('no two tables have a message of the same key, because one would hide the other', async () => {
  const folder = join(PROJECT_ROOT, 'src/webapp');
  const files = readdirSync(folder).filter((name) => name.startsWith('messages-'));
  const tables = await Promise.all(files.map((file) => import(join(folder, file))));
  const english = tables.flatMap((table: Readonly<Record<string, object>>) =>
    Object.entries(table).filter(([name]) => name.startsWith('ENGLISH')),
  );
  expect(english.length).toBe(files.length);
  const keys = english.flatMap(([, messages]) => Object.keys(messages));
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
});
