import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Counts the calls that go to the service at `url`, by route; the long poll and tokens are not counted. */
export class UpstreamCalls {
  readonly #routes: string[] = [];
  readonly #note = (message: unknown): void => {
    // What undici publishes on this channel.
    const { request } = message as { request: { origin: string; path: string } };
    const route = /^\/2\/(?:files\/)?([^?]+)/.exec(request.path)?.[1];
    if (String(request.origin) !== this.url || !route || IN_BACKGROUND.test(route)) return;
    this.#routes.push(route);
  };

  constructor(private readonly url: string) {
    subscribe('undici:request:create', this.#note);
  }

  /** The routes called since the last time, in order. */
  take(): string[] {
    return this.#routes.splice(0);
  }

  close(): void {
    unsubscribe('undici:request:create', this.#note);
  }
}

/** The change feed asks by itself, whatever a client does. */
const IN_BACKGROUND = /^list_folder\/(longpoll|continue|get_latest_cursor)$/;
