import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Route } from '../../src/service/route.ts';
import { ROUTES } from '../../src/service/routes/table.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, send } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const README = new URL('../../src/service/README.md', import.meta.url);

const CALLERS: Record<Route['auth'], string> = {
  user: 'a user',
  app: 'an app',
  'app-or-user': 'a user or an app',
  none: 'anyone without a token',
};

function rowOf({ name, style, auth, scope }: Route): string {
  return `| \`${name}\` | ${style} | ${CALLERS[auth]} | ${scope === undefined ? '' : `\`${scope}\``} |`;
}

test('the table in src/service/README.md is the one that the service works by', () => {
  const rows = readFileSync(README, 'utf8')
    .split('\n')
    .filter((line) => /^\| `[a-z]+\//.test(line));
  const routes = Array.from(ROUTES.values()).sort((one, other) => (one.name < other.name ? -1 : 1));
  expect(rows).toEqual(routes.map(rowOf));
});

test.each(Array.from(ROUTES.values(), (route) => [route.name, route] as const))(
  '%s asks for its scope, and for no other',
  async (name, { auth, scope, style }) => {
    if (scope === undefined || !auth.endsWith('user')) return;
    const { id } = await account(name);
    const token = await service.service.grant({ accountId: id, scopes: ['account_info.write'] });
    const answered = await send(`${service.url}/2/${name}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        ...(style === 'rpc' && { 'content-type': 'application/json' }),
        ...(style === 'upload' && { 'content-type': 'application/octet-stream' }),
        ...(style !== 'rpc' && { 'dropbox-api-arg': headerJson({}) }),
      },
      body: style === 'rpc' ? 'null' : '',
    });
    expect(answered.status).toBe(401);
    expect(answered.json).toMatchObject({ error: { '.tag': 'missing_scope', required_scope: scope } });
  },
);

async function account(name: string): Promise<{ id: string }> {
  const email = `${name.replaceAll('/', '-')}@example.org`;
  return service.service.addAccount({
    email,
    givenName: 'S',
    surname: 'C',
    mayDeletePermanently: false,
  });
}

test.each([
  'paper/docs/list',
  'files/tags/add',
  'files/save_url',
  'files/lock_file_batch',
  'files/copy_reference/get',
  'file_properties/templates/list_for_user',
  'file_requests/list_v2',
  'contacts/delete_manual_contacts',
  'sharing/share_folder',
  'team/get_info',
  'team_log/get_events',
  'users/get_account',
  'openid/userinfo',
  'files/upload_v9',
  'constructor',
  '',
])('%j, which is not here, is answered like a function that never was', async (name) => {
  const answered = await send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
    body: 'null',
  });
  expect([answered.status, answered.headers.get('content-type'), answered.text]).toEqual([
    400,
    'text/plain; charset=utf-8',
    `Unknown API function: "${name}"`,
  ]);
});
