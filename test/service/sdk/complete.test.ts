import { existsSync } from 'node:fs';
import { Dropbox } from 'dropbox';
import { expect, test } from 'vitest';
import type { Route } from '../../../src/service/api/route.ts';
import { ROUTES } from '../../../src/service/routes/table.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';

/** What the SDK's methods ask its one `request` method for. */
interface Asked {
  readonly name: string;
  readonly auth: Route['auth'];
  readonly style: Route['style'];
  readonly host: Route['host'];
  readonly scope: string | undefined;
}

const AUTH: Readonly<Record<string, Route['auth']>> = {
  user: 'user',
  app: 'app',
  'app, user': 'app-or-user',
  noauth: 'none',
};

/** The functions for which both the SDK has a method and the service a route, by name. */
function askedBySdk(): Asked[] {
  const asked: Asked[] = [];
  const sdk = new Dropbox();
  const request = (
    name: string,
    _: unknown,
    who: string,
    host: Route['host'],
    style: Route['style'],
    scope: unknown,
  ) => {
    const auth = AUTH[who] ?? 'none';
    // Where no token is asked for, none can lack a scope.
    asked.push({
      name,
      auth,
      style,
      host,
      scope: scope === null || auth === 'none' ? undefined : String(scope),
    });
  };
  Object.assign(sdk, { request });
  // The methods for functions are the instance's own; what else the SDK can do is its class's.
  const { fetch: _, request: __, auth: ___, ...methods } = sdk as unknown as Record<string, unknown>;
  for (const method of Object.values(methods)) if (typeof method === 'function') method.call(sdk);
  return asked.filter(({ name }) => ROUTES.has(name)).sort((one, other) => (one.name < other.name ? -1 : 1));
}

test('each function that the SDK has a method for is driven by it', () => {
  const driven = Object.values(SDK_ROWS).flatMap((rows) => Object.keys(rows));
  const wanted = askedBySdk().map(({ name }) => name);
  expect(wanted.length).toBeGreaterThan(40);
  expect(driven.sort()).toEqual(wanted);
});

test('and the files that say so are there', () => {
  for (const file of Object.keys(SDK_ROWS))
    expect(existsSync(new URL(`${file}.test.ts`, import.meta.url)), file).toBe(true);
});

test('style, host and scope are as the SDK has them, and whom it calls as is let in', () => {
  const asked = askedBySdk();
  const served = asked.map(({ name, auth: calls }) => {
    const { auth, style, host, scope } = ROUTES.get(name) as Route;
    // The interface has let apps call get_shared_link_file since this SDK came out.
    const isLetIn = auth === calls || (auth === 'app-or-user' && calls === 'user');
    return { name, auth: isLetIn ? calls : auth, style, host, scope };
  });
  expect(served).toEqual(asked);
});
