import { Agent, request } from 'node:http';
import type { Peer } from '../peers.ts';

/** A WebDAV client with a fixed number of kept connections. */
export class DavClient {
  readonly #agent: Agent;

  constructor(
    private readonly peer: Peer,
    readonly connections = 1,
  ) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** Sends one request and reads the answer. Throws if its status is not in `expected`, by default 2xx. */
  send(method: string, path: string, ask: Ask = {}): Promise<Answered> {
    return new Promise((resolve, reject) => {
      const headers = { ...this.peer.headers, ...ask.headers };
      const sent = request(this.peer.url + path, { method, headers, agent: this.#agent }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const status = answer.statusCode ?? 0;
          const text = Buffer.concat(chunks).toString();
          const isExpected = ask.expected ? ask.expected.includes(status) : status >= 200 && status < 300;
          if (isExpected) resolve({ status, text, headers: answer.headers });
          else
            reject(
              new Error(
                `${this.peer.name}: ${method} ${path} was answered with ${status}: ${text.slice(0, 300)}`,
              ),
            );
        });
      });
      sent.on('error', reject);
      sent.end(ask.body);
    });
  }

  /** Returns the names in a folder, those of folders with a trailing slash. */
  async list(folder: string): Promise<string[]> {
    const { text } = await this.send('PROPFIND', `${folder}/`, {
      headers: { depth: '1' },
      body: PROPFIND_BODY,
    });
    const hrefs = [...text.matchAll(/<(?:\w+:)?href>([^<]*)</g)].map((match) => decodeURI(match[1] ?? ''));
    const below = `/${folder}/`;
    return hrefs.map((href) => href.slice(href.indexOf(below) + below.length)).filter((name) => name !== '');
  }

  /** Runs a task for each item, as many in parallel as there are connections. */
  async each<T>(items: readonly T[], task: (item: T) => Promise<unknown>): Promise<void> {
    let next = 0;
    const work = async () => {
      for (let index = next++; index < items.length; index = next++) await task(items[index] as T); // below length
    };
    await Promise.all(Array.from({ length: this.connections }, work));
  }

  close(): void {
    this.#agent.destroy();
  }
}

export interface Ask {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly expected?: readonly number[];
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly headers: NodeJS.Dict<string | string[]>;
}

/** The PROPFIND of Finder and most other clients. */
export const PROPFIND_BODY =
  '<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop><D:displayname/><D:getlastmodified/>' +
  '<D:getcontentlength/><D:resourcetype/><D:getetag/></D:prop></D:propfind>';
