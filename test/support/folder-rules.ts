import { afterAll, beforeAll, expect } from 'vitest';
import type { FolderGrant } from '../../src/config/grant.ts';
import { startTestGateway, type TestGateway } from './gateway.ts';
import { startTestService, type TestService } from './service.ts';

/** Has the whole drive. */
export const BOB = 'bob';
/** Has the rights of `FOLDERS`. */
export const EVE = 'eve';
/** Has /People/Eve as the whole drive, and no right in its folder Diary. */
export const KIM = 'kim';

const FOLDERS: readonly FolderGrant[] = [
  { path: '/Public', right: 'read-only' },
  { path: '/Public/Inbox', right: 'read-write' },
  { path: '/Private', right: 'hidden' },
  { path: '/Team/Bücher', right: 'hidden' },
  { path: '/Plans/Old', right: 'read-only' },
  { path: '/People', right: 'hidden' },
  { path: '/People/Eve', right: 'read-write' },
];

let service: TestService;
let gateway: TestGateway;

/** Gives the tests of a file a drive with these folders, each with the file secret.txt. */
export function withFolderRules(): void {
  beforeAll(start);
  afterAll(async () => {
    await gateway.close();
    await service.close();
  });
}

async function start(): Promise<void> {
  service = await startTestService();
  gateway = await startTestGateway({
    service,
    views: {
      [EVE]: [{ at: '/', root: '', folders: FOLDERS }],
      [KIM]: [{ at: '/', root: '/People/Eve', folders: [{ path: '/Diary', right: 'hidden' }] }],
    },
  });
  await gateway.following();
  const folders = [
    ...[
      '/Open',
      '/Docs',
      '/Public',
      '/Public/Inbox',
      '/Private',
      '/Team',
      '/Team/Bücher',
      '/Plans',
      '/Plans/Old',
    ],
    ...['/People', '/People/Eve', '/People/Eve/Diary', '/People/Max'],
  ];
  for (const folder of folders) expect((await dav(BOB, 'MKCOL', folder)).status).toBe(201);
  for (const folder of folders) await put(`${folder}/secret.txt`);
}

/** Returns the URL of the gateway. */
export const gatewayUrl = () => gateway.url;

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function answered(user: string, at: string, init: RequestInit): Promise<Answer> {
  const headers = new Headers(init.headers);
  headers.set('x-test-user', user);
  const answer = await fetch(new URL(at, gateway.url), { ...init, headers });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

export function dav(user: string, method: string, path: string, init: RequestInit = {}): Promise<Answer> {
  return answered(user, encodeURI(path), { method, ...init });
}

export async function put(path: string, body = 'content'): Promise<void> {
  expect([201, 204]).toContain((await dav(BOB, 'PUT', path, { body })).status);
}

export type Values = Readonly<Record<string, string>>;

export function ask(name: string, values: Values = {}, user = EVE): Promise<Answer> {
  return answered(user, `/.davgate/api/${name}?${new URLSearchParams(values)}`, {});
}

export function call(name: string, values: Values, user = EVE): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  return answered(user, `/.davgate/api/${name}`, { method: 'POST', headers, body: JSON.stringify(values) });
}

export const zip = (folder: string, names: readonly string[]) =>
  answered(EVE, '/.davgate/api/zip', {
    method: 'POST',
    body: new URLSearchParams({ folder, names: JSON.stringify(names) }),
  });

export const to = (destination: string) => ({ headers: { Destination: encodeURI(destination) } });

/** Returns the names and revisions of everything in the drive. */
export async function everything(): Promise<string> {
  const body = '<propfind xmlns="DAV:"><prop><getetag/></prop></propfind>';
  return (await dav(BOB, 'PROPFIND', '/', { headers: { Depth: 'infinity' }, body })).text;
}

export async function hrefs(path: string, depth: string, user = EVE): Promise<readonly string[]> {
  const { status, text } = await dav(user, 'PROPFIND', path, { headers: { Depth: depth } });
  expect(status).toBe(207);
  return Array.from(text.matchAll(/<D:response><D:href>([^<]*)<\/D:href>/g), ([, href = '']) =>
    decodeURI(href),
  );
}
