import { existsSync } from 'node:fs';
import { Dropbox } from 'dropbox';
import { expect, test } from 'vitest';
import type { Route } from '../../../src/service/api/route.ts';
import { ROUTES } from '../../../src/service/routes/table.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';

/** Properties of a `Dropbox` object that call no function of the API. */
const INTERNAL = new Set(['fetch', 'request', 'auth']);

/** The arguments that a method of the SDK passes to `request`. */
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

/** Returns the calls of the SDK's methods, sorted by name, for each function that the service has a route for. */
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
    // A function without a token has no scope.
    asked.push({
      name,
      auth,
      style,
      host,
      scope: scope === null || auth === 'none' ? undefined : String(scope),
    });
  };
  Object.assign(sdk, { request });
  // The SDK defines API methods as properties of the instance, and its own methods on the class.
  const properties: [name: string, value: unknown][] = Object.entries(sdk);
  for (const [name, value] of properties)
    if (!INTERNAL.has(name) && typeof value === 'function') value.call(sdk);
  return asked.filter(({ name }) => ROUTES.has(name)).sort((one, other) => (one.name < other.name ? -1 : 1));
}

test('SDK_ROWS names each function of the service that the SDK has a method for', () => {
  const driven = Object.values(SDK_ROWS).flatMap((rows) => Object.keys(rows));
  const wanted = askedBySdk().map(({ name }) => name);
  expect(wanted.length).toBeGreaterThan(40);
  expect(driven.sort()).toEqual(wanted);
});

test('each file named in SDK_ROWS exists beside this one', () => {
  for (const file of Object.keys(SDK_ROWS))
    expect(existsSync(new URL(`${file}.test.ts`, import.meta.url)), file).toBe(true);
});

test('each route has the style, host and scope of the SDK, and lets in the caller that the SDK names', () => {
  const asked = askedBySdk();
  const served = asked.map(({ name, auth: calls }) => {
    const route = ROUTES.get(name);
    if (!route) throw new Error(`no route for ${name}`);
    const { auth, style, host, scope } = route;
    // The API lets apps call get_shared_link_file since a later version than this SDK.
    const isLetIn = auth === calls || (auth === 'app-or-user' && calls === 'user');
    return { name, auth: isLetIn ? calls : auth, style, host, scope };
  });
  expect(served).toEqual(asked);
});
