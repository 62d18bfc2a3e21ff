import { send } from './dav.ts';

/** The functions of the gateway beside WebDAV. */
const API = '/.davgate/api/';

type Values = Readonly<Record<string, string>>;

/** Calls a function that changes nothing, and returns its answer. Throws `DavFailure`. */
export async function ask<Answer>(name: string, values: Values = {}, signal?: AbortSignal): Promise<Answer> {
  const query = new URLSearchParams(values).toString();
  const answer = await send('GET', `${API}${name}?${query}`, signal ? { signal } : {});
  return answer.json();
}
