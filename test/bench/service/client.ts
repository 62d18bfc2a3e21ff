/** Calls one service with one token. */
export class Client {
  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {}

  async rpc<T>(name: string, argument: unknown): Promise<T> {
    const body = JSON.stringify(argument);
    return (await (await this.#send(name, { 'content-type': 'application/json' }, body)).json()) as T;
  }

  async upload<T>(name: string, argument: unknown, body: Uint8Array | string): Promise<T> {
    const headers = {
      'content-type': 'application/octet-stream',
      'dropbox-api-arg': JSON.stringify(argument),
    };
    return (await (await this.#send(name, headers, body)).json()) as T;
  }

  /** Returns the size of a file's content, in bytes. */
  async download(path: string): Promise<number> {
    const answer = await this.#send('files/download', { 'dropbox-api-arg': JSON.stringify({ path }) }, null);
    let bytes = 0;
    for await (const chunk of answer.body ?? []) bytes += (chunk as Uint8Array).length;
    return bytes;
  }

  async #send(
    name: string,
    headers: Record<string, string>,
    body: Uint8Array | string | null,
  ): Promise<Response> {
    const answer = await fetch(`${this.url}/2/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token}`, ...headers },
      body,
    });
    if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}

/** Runs `work` for the numbers below `count`, at most `atOnce` at a time. */
export async function inParallel(
  count: number,
  atOnce: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const run = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: atOnce }, run));
}

/** Returns the duration of `work`, in seconds. */
export async function secondsOf(work: () => Promise<unknown> | unknown): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}
