import { type Item, send } from './dav.ts';
import { base } from './paths.ts';

/** The functions of the gateway beside WebDAV. */
export const API = `${base}/.davgate/api/`;

type Values = Readonly<Record<string, string>>;

/** Returns the address of a function that changes nothing. */
export function addressOfFunction(name: string, values: Values = {}): string {
  return `${API}${name}?${new URLSearchParams(values).toString()}`;
}

/** Returns the address of a small image of a file. It names the revision, so that browsers can keep the image. */
export function thumbnailOf({ path, etag = '' }: Item): string {
  return addressOfFunction('thumbnail', { path, rev: etag.replaceAll('"', '') });
}

/** Calls a function that changes nothing, and returns its answer. Throws `DavFailure`. */
export async function ask<Answer>(name: string, values: Values = {}, signal?: AbortSignal): Promise<Answer> {
  const answer = await send('GET', addressOfFunction(name, values), signal ? { signal } : {});
  return answer.json();
}

/** Calls a function that changes something, and returns its answer. Throws `DavFailure`. */
export async function call<Answer>(name: string, values: Values): Promise<Answer> {
  const headers = { 'Content-Type': 'application/json' };
  const answer = await send('POST', `${API}${name}`, { headers, body: JSON.stringify(values) });
  return answer.json();
}
