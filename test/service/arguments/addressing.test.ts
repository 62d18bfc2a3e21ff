import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../../src/service/routes/table.ts';
import { Networks } from '../../../src/util/networks.ts';
import { type Item, newFile, newFolder, newImage, newTable } from '../../support/items.ts';
import { type Form, PATH_FIELDS, type PathField, READ, WITHOUT_PATH } from '../../support/path-fields.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { type Answered, rpc } from '../../support/service-client.ts';

// Each function with a path field is called with each form of address. A form that the field's pattern allows
// means the same item. Other forms are refused before anything changes.

let service: TestService;
let namespace: string;

beforeAll(async () => {
  service = await startTestService({ webFiles: { allowedNetworks: new Networks(['127.0.0.1']) } });
  const account = await rpc(service, 'users/get_current_account', null);
  namespace = (account.json as { root_info: { home_namespace_id: string } }).root_info.home_namespace_id;
});
afterAll(() => service.close());

const MAKERS = { file: newFile, image: newImage, table: newTable, folder: newFolder, new: newFolder };

/** Makes the item of a case. Returns it with its address in each form. */
async function itemFor({ names }: PathField): Promise<{ item: Item; addresses: Record<Form, string> }> {
  const item = await MAKERS[names](service);
  const below = names === 'new' ? '/new' : '';
  const addresses = {
    path: item.path + below,
    ns: `ns:${namespace}${item.path}${below}`,
    id: item.id + below,
    rev: `rev:${item.rev}`,
  };
  return { item, addresses };
}

test('PATH_FIELDS and WITHOUT_PATH name every function of the service', () => {
  const named = new Set([...PATH_FIELDS.map(({ route }) => route), ...WITHOUT_PATH]);
  expect([...named].sort()).toEqual([...ROUTES.keys()].sort());
});

/** Returns an answer without the parts that differ between two new items. */
function shapeOf({ status, json }: Answered, { path }: Item): unknown {
  const plain = JSON.stringify(json ?? null)
    .replaceAll(path.slice(1), 'ITEM')
    .replaceAll(path.slice(1).toLowerCase(), 'ITEM')
    .replaceAll(path.split('/').at(-1) ?? '', 'NAME')
    .replaceAll(/"(id|rev|cursor|content_hash|content-hash|link|url|\w+_modified)":"[^"]*"/g, '"$1":…');
  return { status, plain: plain.replaceAll(/ITEM|NAME|File \d+/g, 'IT') };
}

describe.each(PATH_FIELDS.map((one) => [one.route, one.field, one] as const))(
  '%s, %s',
  (route, field, one) => {
    let expected: unknown;
    beforeAll(async () => {
      const { item, addresses } = await itemFor(one);
      expected = shapeOf(await one.call(service, addresses.path, item), item);
    });

    test.each(READ.filter((form) => one.allows.includes(form)))(
      `${route} takes its field ${field} as an address by %s`,
      async (form) => {
        const { item, addresses } = await itemFor(one);
        const answered = await one.call(service, addresses[form], item);
        expect(answered.status, answered.text).toBe(200);
        expect(shapeOf(answered, item)).toEqual(expected);
        if (one.names === 'new')
          expect((await rpc(service, 'files/get_metadata', { path: addresses.path })).status).toBe(200);
      },
    );

    test.each(READ.filter((form) => !one.allows.includes(form)))(
      `${route} refuses its field ${field} as an address by %s, and keeps the item`,
      async (form) => {
        const { item, addresses } = await itemFor(one);
        const answered = await one.call(service, addresses[form], item);
        if (one.isUpload) {
          expect([answered.status, JSON.stringify(answered.json)]).toEqual([
            409,
            expect.stringContaining('malformed_path'),
          ]);
        } else if (one.route === 'files/download_zip') {
          // The pattern allows rev:, but a revision is never a folder.
          expect(answered.json).toMatchObject({ error: { path: { '.tag': 'not_folder' } } });
        } else {
          expect([answered.status, answered.text]).toEqual([
            400,
            expect.stringContaining(`'${addresses[form]}' did not match pattern`),
          ]);
        }
        expect((await rpc(service, 'files/get_metadata', { path: item.path })).status).toBe(200);
      },
    );

    test(`${route} refuses a foreign namespace and an unknown id in its field ${field}, and keeps the item`, async () => {
      const { item } = await itemFor(one);
      const below = one.names === 'new' ? '/new' : '';
      for (const address of [`ns:1${item.path}${below}`, `id:AAAAAAAAAAAAAAAAAAAAAA${below}`]) {
        if (!one.allows.includes(address.startsWith('id:') ? 'id' : 'ns')) continue;
        const answered = await one.call(service, address, item);
        // As in the real service, a search in a missing folder finds nothing.
        const isSearch = one.route.startsWith('files/search') && answered.status === 200;
        if (isSearch) expect(answered.json).toMatchObject({ matches: [] });
        else
          expect([answered.status, answered.json ? JSON.stringify(answered.json) : answered.text]).toEqual([
            409,
            expect.stringMatching(/not_found|no_write_permission|malformed_path/),
          ]);
      }
      expect((await rpc(service, 'files/get_metadata', { path: item.path })).status).toBe(200);
    });
  },
);
