import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../src/service/accounts/scopes.ts';
import type { Route } from '../../src/service/api/route.ts';
import { ROUTES } from '../../src/service/routes/table.ts';
import { addApp, besideService } from '../support/consent.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, headerJson, refusal, refusalIn, send } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const PAGE = new URL('../../docs/service/api.md', import.meta.url);

const CALLERS: Record<Route['auth'], string> = {
  user: 'a user',
  app: 'an app',
  'app-or-user': 'a user or an app',
  none: 'anyone without a token',
};

function rowOf({ name, style, auth, scope }: Route): string {
  return `| \`${name}\` | ${style} | ${CALLERS[auth]} | ${scope === undefined ? '' : `\`${scope}\``} |`;
}

test('the table in docs/service/api.md has every function with its style, caller and scope', () => {
  const rows = readFileSync(PAGE, 'utf8')
    .split('\n')
    .filter((line) => /^\| `[a-z_]+\//.test(line));
  const routes = Array.from(ROUTES.values()).sort((one, other) => (one.name < other.name ? -1 : 1));
  expect(rows).toEqual(routes.map(rowOf));
});

const SCOPED = [...ROUTES.values()].flatMap(({ name, auth, scope, style }) =>
  scope === undefined ? [] : [{ name, auth, scope, style }],
);

/** Calls a function with an empty argument. The scope is checked before the argument. */
function callAs(authorization: string, { name, style }: Pick<Route, 'name' | 'style'>): Promise<Answered> {
  return send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: {
      authorization,
      ...(style === 'rpc' && { 'content-type': 'application/json' }),
      ...(style === 'upload' && { 'content-type': 'application/octet-stream' }),
      ...(style !== 'rpc' && { 'dropbox-api-arg': headerJson({}) }),
    },
    body: style === 'rpc' ? '{}' : '',
  });
}

/** Adds an app with `appScopes` and a token of it with `scopes`. Returns both Authorization values. */
async function tokenOf(
  appScopes: readonly Scope[],
  scopes: readonly Scope[],
): Promise<{ token: string; basic: string }> {
  const { app, secret } = await addApp(service, { scopes: appScopes });
  const basic = `Basic ${Buffer.from(`${app.key}:${secret}`).toString('base64')}`;
  const token = await besideService(service, async ({ tokens, accounts }) => {
    const accountId = (await accounts.all())[0]?.id ?? '';
    return await tokens.grantAccess(0, { accountId, appKey: app.key, scopes });
  });
  return { token: `Bearer ${token}`, basic };
}

describe.each(SCOPED)('$name with scope $scope', (route) => {
  const { scope, auth, name } = route;
  const others = SCOPES.filter((other) => other !== scope);

  test(`${route.name} answers a token without ${route.scope} with missing_scope`, async () => {
    expect(refusalIn(await callAs((await tokenOf(SCOPES, others)).token, route))).toEqual(
      refusal(401, 'missing_scope', { '.tag': 'missing_scope', required_scope: scope }),
    );
  });

  test(`${route.name} accepts a token with ${route.scope} alone`, async () => {
    const { status, text } = await callAs((await tokenOf([scope], [scope])).token, route);
    expect(status).not.toBe(401);
    expect(text).not.toContain('scope');
  });

  test(`${route.name} answers 400 to an app without ${route.scope}, whatever the scopes of its token`, async () => {
    const { token, basic } = await tokenOf(others, SCOPES);
    const calls = auth === 'user' ? [token] : [token, basic];
    for (const authorization of calls) {
      const { status, headers, text } = await callAs(authorization, route);
      expect([status, headers.get('content-type')]).toEqual([400, 'text/plain; charset=utf-8']);
      expect(text).toBe(
        `Error in call to API function "${name}": Your app is not permitted to access this endpoint because it does not have the required scope '${scope}'. The owner of the app can enable the scope for the app.`,
      );
    }
  });
});

test.each([...ROUTES.values()].filter(({ scope, auth }) => scope === undefined && auth !== 'none'))(
  '$name needs no scope',
  async (route) => {
    const { token, basic } = await tokenOf([], []);
    const { status } = await callAs(route.auth === 'app' ? basic : token, route);
    expect(status).toBe(200);
  },
);

test.each([
  'paper/docs/list',
  'files/export',
  'files/lock_file_batch',
  'file_properties/templates/add_for_user',
  'file_requests/list_v2',
  'contacts/delete_manual_contacts',
  'sharing/share_folder',
  'team/get_info',
  'team_log/get_events',
  'openid/userinfo',
  'files/upload_v9',
  'constructor',
  '',
])('%j, which the service does not implement, answers Unknown API function', async (name) => {
  const answered = await send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
    body: 'null',
  });
  expect([answered.status, answered.headers.get('content-type'), answered.text]).toEqual([
    400,
    'text/plain; charset=utf-8',
    `Error in call to API function "${name}": Unknown API function: /2/${name}`,
  ]);
});
