import type { TestService } from './service.ts';

/** An answer of the service. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; `undefined` if it is not JSON. */
  readonly json: unknown;
}

export interface CallOptions {
  /** The access token. The default is the service's own; `null` sends none. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
}

/** What a call needs to know of a service. */
export type Callable = Pick<TestService, 'url' | 'token'>;

/** Calls an RPC function like the official clients. */
export function rpc(
  service: Callable,
  name: string,
  argument: unknown,
  options: CallOptions = {},
): Promise<Answered> {
  return send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: { ...authorization(service, options), 'content-type': 'application/json', ...options.headers },
    body: options.body ?? JSON.stringify(argument),
  });
}

/** Calls an upload-style function, with its argument in a header. */
export function upload(
  service: Callable,
  name: string,
  argument: unknown,
  options: CallOptions = {},
): Promise<Answered> {
  return send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: {
      ...authorization(service, options),
      'content-type': 'application/octet-stream',
      'dropbox-api-arg': headerJson(argument),
      ...options.headers,
    },
    body: options.body ?? '',
  });
}

/** Uploads a file with mode overwrite. Returns its metadata. */
export async function put(
  service: TestService,
  path: string,
  body: Uint8Array | string,
): Promise<Record<string, unknown>> {
  const answered = await upload(service, 'files/upload', { path, mode: 'overwrite' }, { body });
  if (answered.status !== 200) throw new Error(`upload of ${path}: ${answered.status} ${answered.text}`);
  return answered.json as Record<string, unknown>;
}

/** Makes a shared link with these SharedLinkSettings. Returns its URL. */
export async function sharedLink(service: TestService, path: string, settings?: object): Promise<string> {
  const argument = settings ? { path, settings } : { path };
  const { json, text } = await rpc(service, 'sharing/create_shared_link_with_settings', argument);
  const { url, error } = json as { url?: string; error?: { '.tag'?: string } };
  if (url !== undefined) return url;
  if (error?.['.tag'] !== 'shared_link_already_exists') throw new Error(`link to ${path}: ${text}`);
  const listed = await rpc(service, 'sharing/list_shared_links', { path, direct_only: true });
  return (listed.json as { links: { url: string }[] }).links[0]?.url ?? '';
}

/** Returns the form that refreshes a token of the default account. */
export function refreshForm({ refreshToken, appKey, appSecret }: TestService): Record<string, string> {
  return {
    grant_type: 'refresh_token',
    refresh_token: refreshToken,
    client_id: appKey,
    client_secret: appSecret,
  };
}

/** Returns a new access token of the default account. */
export async function refreshedToken(service: TestService): Promise<string> {
  const body = new URLSearchParams(refreshForm(service));
  const { json } = await send(`${service.url}/oauth2/token`, { method: 'POST', body });
  return (json as { access_token: string }).access_token;
}

/** Calls `files/download`. The answer's `text` has the bytes as UTF-8. */
export function download(service: Callable, path: string, options: CallOptions = {}): Promise<Answered> {
  return send(`${service.url}/2/files/download`, {
    method: 'POST',
    headers: {
      ...authorization(service, options),
      'dropbox-api-arg': headerJson({ path }),
      ...options.headers,
    },
  });
}

export async function send(url: string, init: RequestInit): Promise<Answered> {
  const response = await fetch(url, { redirect: 'manual', ...init }).catch((error: Error) => {
    // The message of fetch never says why.
    throw new Error(`${url}: ${String(error.cause ?? error)}`, { cause: error });
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type') === 'application/json';
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  };
}

export function headerJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function authorization(service: Callable, { token }: CallOptions): Record<string, string> {
  return token === null ? {} : { authorization: `Bearer ${token ?? service.token}` };
}

/** Returns the expected form of a refusal with JSON: status, summary, error and request id. */
export function refusal(status: number, summary: string, error: unknown): Record<string, unknown> {
  return { status, summary, error, hasRequestId: true, type: 'application/json' };
}

/** Returns an answer in the form of `refusal`. */
export function refusalIn(answered: Answered): Record<string, unknown> {
  const { error_summary: summary, error } = (answered.json ?? {}) as {
    error_summary?: string;
    error?: unknown;
  };
  return {
    status: answered.status,
    summary: summary?.replace(/\/\.{0,3}$/, ''),
    error,
    hasRequestId: /^[0-9a-f]{32}$/.test(answered.headers.get('x-dropbox-request-id') ?? ''),
    type: answered.headers.get('content-type'),
  };
}

/** Returns all paths in the account, sorted; those of folders end with a slash. */
export async function storedPaths(service: Callable): Promise<readonly string[]> {
  const { json } = await rpc(service, 'files/list_folder', { path: '', recursive: true });
  const { entries } = json as { entries: readonly { path_display: string; '.tag': string }[] };
  return entries.map((entry) => entry.path_display + (entry['.tag'] === 'folder' ? '/' : '')).sort();
}
