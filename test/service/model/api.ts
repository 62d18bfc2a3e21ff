import { type Callable, headerJson } from '../../support/service-client.ts';

/** The fields of an entry that the model checks. */
export interface Shown {
  readonly '.tag'?: 'file' | 'folder' | 'deleted';
  readonly id: string;
  readonly path_lower: string;
  readonly path_display: string;
  readonly rev?: string;
  readonly size?: number;
  readonly content_hash?: string;
}

export interface Page {
  readonly entries: readonly Shown[];
  readonly cursor: string;
  readonly has_more: boolean;
}

/** What a long poll says. `cut off`: its connection ended without an answer, or the caller ended it. */
type PollOutcome = 'changed' | 'unchanged' | 'cut off' | { readonly refusal: string };

/**
 * Calls of the service over HTTP. A refusal is returned as the joined tags of its error: `path/conflict/file`.
 */
export class Api {
  constructor(private readonly service: Callable) {}

  async rpc<T = Record<string, unknown>>(name: string, argument: unknown): Promise<T | string> {
    const body = JSON.stringify(argument);
    return await this.#call<T>(name, { 'content-type': 'application/json' }, body);
  }

  async upload<T = Record<string, unknown>>(name: string, argument: unknown, text = ''): Promise<T | string> {
    const headers = { 'content-type': 'application/octet-stream', 'dropbox-api-arg': headerJson(argument) };
    return await this.#call<T>(name, headers, text);
  }

  /** Returns the text of a download, or `!` and the refusal. */
  async download(path: string, range?: string): Promise<string> {
    const headers = { 'dropbox-api-arg': headerJson({ path }), ...(range && { range }) };
    const response = await this.#send('files/download', headers, null);
    const text = await response.text();
    return response.ok ? text : `!${refusalOf(response.status, text)}`;
  }

  /** Returns the outcome of a long poll, which takes no token. */
  async changes(cursor: string, signal?: AbortSignal): Promise<PollOutcome> {
    const body = JSON.stringify({ cursor, timeout: 30 });
    const headers = { 'content-type': 'application/json' };
    const address = `${this.service.url}/2/files/list_folder/longpoll`;
    try {
      const response = await fetch(address, { method: 'POST', headers, body, ...(signal && { signal }) });
      const text = await response.text();
      if (!response.ok) return { refusal: refusalOf(response.status, text) };
      if (text !== '{"changes":true}' && text !== '{"changes":false}') throw new Error(`longpoll: ${text}`);
      return text.includes('true') ? 'changed' : 'unchanged';
    } catch (error) {
      if (error instanceof TypeError || signal?.aborted) return 'cut off';
      throw error;
    }
  }

  /** Runs a batch to its end. Returns its entries. */
  async batch(name: string, argument: unknown): Promise<(Record<string, unknown> | string)[]> {
    type Launched = { '.tag': string; async_job_id: string; entries: unknown[] };
    const check = name.endsWith('_v2') ? `${name.slice(0, -3)}/check_v2` : `${name}/check`;
    let state = await this.rpc<Launched>(name, argument);
    const job = typeof state === 'string' ? '' : state.async_job_id;
    while (typeof state !== 'string' && state['.tag'] !== 'complete')
      state = await this.rpc<Launched>(check, { async_job_id: job });
    if (typeof state === 'string') throw new Error(`${name}: ${state}`);
    return state.entries.map(entryOutcome);
  }

  async #call<T>(name: string, headers: Record<string, string>, body: string): Promise<T | string> {
    const response = await this.#send(name, headers, body);
    const text = await response.text();
    return response.ok ? (JSON.parse(text) as T) : refusalOf(response.status, text);
  }

  #send(name: string, headers: Record<string, string>, body: string | null): Promise<Response> {
    const { url, token } = this.service;
    return fetch(`${url}/2/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...headers },
      body,
    });
  }
}

function refusalOf(status: number, text: string): string {
  if (status !== 409) return `${status} ${text}`;
  return tagsOf((JSON.parse(text) as { error: Tagged }).error);
}

/** Returns the metadata of a batch entry, or the tags of its refusal. */
export function entryOutcome(entry: unknown): Record<string, unknown> | string {
  const { '.tag': tag, failure, success, metadata, ...fields } = entry as Tagged;
  if (tag === 'failure') return tagsOf(failure as Tagged);
  return (success ?? metadata ?? fields) as Record<string, unknown>;
}

type Tagged = { readonly '.tag': string } & Readonly<Record<string, unknown>>;

function tagsOf(error: Tagged): string {
  const tag = error['.tag'];
  const inner = (error[tag] ?? error['reason']) as Tagged | undefined;
  return inner?.['.tag'] === undefined ? tag : `${tag}/${tagsOf(inner)}`;
}
