import fc from 'fast-check';
import { expect, test } from 'vitest';
import { join, pathOf, ROOT } from '../../../src/util/path.ts';
import { anyCharacter } from '../../support/characters.ts';
import { startPropertyServer } from '../../support/property-server.ts';

const CONTROL_CHARACTERS = /[^\P{Cc}\t\n\r\x7f-\x9f]|[\ufffe\uffff]/gu;

/** Any valid name, including line ends, control characters, markup and escapes. */
const name = fc
  .oneof(
    fc.string({ unit: anyCharacter, minLength: 1, maxLength: 40 }),
    fc.string({
      unit: fc.constantFrom(...'<>&"\'#?%;:@ \t\n\r\u0001\ud7ff\ufffe]', 'é', '😀', '%2F', '&amp;'),
      minLength: 1,
    }),
  )
  .map((text) => text.normalize('NFC').replace(/[/\0]/g, '_'))
  .filter((text) => text !== '.' && text !== '..' && text.isWellFormed());

test('every valid name gives well-formed XML and an href that leads back to it', async () => {
  const server = await startPropertyServer();
  let made = 0;
  await fc.assert(
    fc.asyncProperty(name, async (child) => {
      made += 1;
      const folder = pathOf([`folder ${made}`]);
      await server.files.createFolder(folder);
      const path = join(folder, child);
      await server.files.createFolder(path);
      const target = `/folder%20${made}/`;
      const [, row] = (await server.send('PROPFIND', target, undefined, { Depth: '1' })).rows;
      expect(row?.href.split('/').map(decodeURIComponent)).toEqual(['', `folder ${made}`, child, '']);
      const displayed = row?.properties.get('{DAV:}displayname')?.text;
      expect(displayed).toBe(child.replace(CONTROL_CHARACTERS, '\ufffd'));
      const [own] = (await server.send('PROPFIND', row?.href ?? '', undefined, { Depth: '0' })).rows;
      expect(own?.href).toBe(row?.href);
    }),
    { numRuns: 300 },
  );
});

test('the root has a displayname', async () => {
  const server = await startPropertyServer();
  const [row] = (await server.send('PROPFIND', '/', undefined, { Depth: '0' })).rows;
  expect(row?.properties.get('{DAV:}displayname')?.text).toBe('/');
  expect((await server.files.list(ROOT)).folder.name).toBe('');
});
