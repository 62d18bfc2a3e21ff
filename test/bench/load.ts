import { Agent, type IncomingMessage, request } from 'node:http';

export interface Ask {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends one request and reads the whole answer. Resolves with its status and size in bytes. */
export function exchange(agent: Agent, ask: Ask): Promise<{ status: number; sizeBytes: number }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      ask.url,
      { method: ask.method, headers: ask.headers, agent },
      (answer: IncomingMessage) => {
        let sizeBytes = 0;
        answer.on('data', (chunk: Buffer) => {
          sizeBytes += chunk.length;
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, sizeBytes }));
        answer.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(ask.body);
  });
}

/** Returns the rate of `ask` over `connections` kept connections in about `durationMs`, in requests a second. */
export async function rateOf(ask: Ask, connections: number, durationMs: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const start = performance.now();
  let count = 0;
  const work = async () => {
    // At least one request per connection, also for a slow peer.
    do {
      const { status } = await exchange(agent, ask);
      if (status >= 300) throw new Error(`${ask.method} ${ask.url} was answered with ${status}`);
      count++;
    } while (performance.now() - start < durationMs);
  };
  await Promise.all(Array.from({ length: connections }, work));
  const seconds = (performance.now() - start) / 1000;
  agent.destroy();
  return count / seconds;
}

/** Returns the rate of one GET, in MB/s. */
export async function downloadRate(ask: Ask, sizeBytes: number): Promise<number> {
  const agent = new Agent();
  const start = performance.now();
  const answer = await exchange(agent, ask);
  if (answer.sizeBytes !== sizeBytes)
    throw new Error(`${ask.url}: ${answer.sizeBytes} bytes in place of ${sizeBytes}`);
  return sizeBytes / 1e6 / ((performance.now() - start) / 1000);
}

/** Returns the rate of one PUT of `sizeBytes`, which repeats one buffer, in MB/s. */
export function uploadRate(ask: Ask, sizeBytes: number, piece: Buffer): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { ...ask.headers, 'content-length': String(sizeBytes) };
    const sent = request(ask.url, { method: 'PUT', headers }, (answer) => {
      answer.resume();
      answer.on('end', () => {
        if ((answer.statusCode ?? 0) >= 300)
          reject(new Error(`PUT ${ask.url} was answered with ${answer.statusCode}`));
        else resolve(sizeBytes / 1e6 / ((performance.now() - start) / 1000));
      });
    });
    sent.on('error', reject);
    let left = sizeBytes;
    const write = () => {
      while (left > 0) {
        const chunk = piece.subarray(0, Math.min(piece.length, left));
        left -= chunk.length;
        if (!sent.write(chunk)) return sent.once('drain', write);
      }
      return sent.end();
    };
    write();
  });
}
