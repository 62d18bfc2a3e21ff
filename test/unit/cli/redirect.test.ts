import { afterEach, describe, expect, test } from 'vitest';
import { openRedirect, type Redirect } from '../../../src/cli/login/redirect.ts';
import { freePort } from '../../support/free-port.ts';
import { connectRaw } from '../../support/raw-http.ts';

let redirect: Redirect | undefined;
afterEach(() => redirect?.close());

async function opened(): Promise<{ uri: string; code: Promise<string> }> {
  const uri = `http://127.0.0.1:${await freePort()}/back`;
  redirect = await openRedirect(uri, 'our state');
  return { uri, code: redirect.code() };
}

async function visit(uri: string, parameters: Record<string, string>, method = 'GET') {
  const answer = await fetch(`${uri}?${new URLSearchParams(parameters)}`, { method });
  return { status: answer.status, text: await answer.text() };
}

describe('the OAuth redirect server', () => {
  test('the redirect server takes the code, and answers that the page can be closed', async () => {
    const { uri, code } = await opened();
    const { status, text } = await visit(uri, { code: 'SECRET', state: 'our state' });
    expect([status, text]).toEqual([200, expect.stringContaining('You can close this page')]);
    expect(text).not.toContain('SECRET');
    expect(await code).toBe('SECRET');
  });

  test('the redirect server ignores another state, path or method', async () => {
    const { uri, code } = await opened();
    expect((await visit(uri, { code: 'evil', state: 'other' })).status).toBe(400);
    expect((await visit(uri, { code: 'evil' })).status).toBe(400);
    expect((await visit(uri, { error: 'access_denied' })).status).toBe(400);
    expect((await visit(`${uri}/more`, { code: 'evil', state: 'our state' })).status).toBe(404);
    expect((await visit(uri, { code: 'evil', state: 'our state' }, 'POST')).status).toBe(404);
    await visit(uri, { code: 'ours', state: 'our state' });
    expect(await code).toBe('ours');
  });

  test('a request for what is no URL answers 404, and the login goes on', async () => {
    const { uri, code } = await opened();
    const { port } = new URL(uri);
    const connection = connectRaw(Number(port), 'GET // HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await connection.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /);
    await visit(uri, { code: 'ours', state: 'our state' });
    expect(await code).toBe('ours');
  });

  test('the redirect server reports declined access and a refusal of the service', async () => {
    const declined = await opened();
    await visit(declined.uri, { error: 'access_denied', state: 'our state' });
    await expect(declined.code).rejects.toThrow('access was declined');
    await redirect?.close();
    const refused = await opened();
    await visit(refused.uri, { error: 'server_error', state: 'our state' });
    await expect(refused.code).rejects.toThrow('the storage service refused the request');
  });

  test.each([
    'http://192.0.2.1:8764/',
    'http://example.org:8764/',
    'https://localhost:8764/',
    'http://localhost/',
    'http://localhost:8764/?x',
    'localhost:8764',
  ])('the redirect address %s is refused', async (uri) => {
    await expect(openRedirect(uri, 's')).rejects.toThrow(
      /^--redirect: ".*" is not an address of this machine/,
    );
  });
});
