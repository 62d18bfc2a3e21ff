import { expect } from 'vitest';
import type { GatewayClient } from './gateway.ts';
import { parseMultistatus } from './multistatus.ts';

export interface Sending {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly user?: string;
}

/** Returns functions that use the drive of a gateway. Most of them expect success. */
export function driveUser(clientNow: () => GatewayClient) {
  async function send(method: string, path: string, { headers = {}, body, user }: Sending = {}) {
    const answer = await clientNow().send(method, path, {
      headers: { ...headers, ...(user !== undefined && { 'x-test-user': user }) },
      ...(body !== undefined && { body: Buffer.from(body) }),
    });
    return { ...answer, text: answer.body.toString() };
  }

  async function put(path: string, body: string, how: Sending = {}): Promise<void> {
    expect([201, 204]).toContain((await send('PUT', path, { ...how, body })).status);
  }

  async function remove(path: string, how: Sending = {}): Promise<void> {
    expect((await send('DELETE', path, { ...how, headers: { prefer: 'recoverable' } })).status).toBe(204);
  }

  async function folder(...paths: readonly string[]): Promise<void> {
    for (const path of paths) expect((await send('MKCOL', path)).status).toBe(201);
  }

  const copy = (from: string, to: string, { headers, ...how }: Sending = {}) =>
    send('COPY', from, { ...how, headers: { destination: encodeURI(to), ...headers } });

  /** Returns the rows of a folder's members. */
  async function rowsOf(path: string, how: Sending = {}) {
    const { status, text } = await send('PROPFIND', path, { ...how, headers: { depth: '1' } });
    expect([path, status]).toEqual([path, 207]);
    return (await parseMultistatus(text)).slice(1);
  }

  /** Returns the names of a folder's members; those of folders end with a slash. */
  async function namesIn(path: string, how: Sending = {}): Promise<readonly string[]> {
    const hrefs = (await rowsOf(path, how)).map(({ href }) => decodeURI(href));
    return hrefs.map((href) => /[^/]+\/?$/.exec(href)?.[0] ?? href);
  }

  async function textOf(path: string, how: Sending = {}): Promise<string> {
    const { status, text } = await send('GET', path, how);
    return status === 200 ? text : String(status);
  }

  return { send, put, remove, folder, copy, rowsOf, namesIn, textOf };
}
