import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { StateInUse } from '../state/errors.ts';

/** Sends commands to the davgate that uses a data directory, through its control socket. */
export class ControlClient {
  constructor(
    private readonly socketPath: string,
    private readonly dataDirectory: string,
  ) {}

  /** Returns the value of a 200 or 409 answer; `undefined` for 404. Throws `StateInUse` without an answer. */
  async ask(method: string, path: string): Promise<unknown> {
    const answer = await this.#open(method, path);
    const value: unknown = JSON.parse(await text(answer));
    return answer.statusCode === 404 ? undefined : value;
  }

  /** Returns the bytes of a 200 answer; `undefined` for 404. */
  async bytes(path: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    const answer = await this.#open('GET', path);
    if (answer.statusCode === 200) return answer;
    answer.resume();
    return undefined;
  }

  #open(method: string, path: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = request({ socketPath: this.socketPath, method, path }, (incoming) => {
        const { statusCode = 0 } = incoming;
        if ([200, 404, 409].includes(statusCode)) resolve(incoming);
        else reject(new Error(`the running davgate answered ${statusCode}; see its log`));
      });
      // The other process uses the state, but has no control socket.
      outgoing.once('error', () => reject(new StateInUse(this.dataDirectory)));
      outgoing.end();
    });
  }
}
