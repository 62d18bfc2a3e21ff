import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Records the calls to the service at `url` by route, without long polls and token requests. */
export class UpstreamCalls {
  /** Called with the route of each call before it is sent. */
  onCall: (route: string) => void = () => undefined;
  readonly #routes: string[] = [];
  readonly #note = (message: unknown): void => {
    // The message that undici publishes on this channel.
    const { request } = message as { request: { origin: string; path: string } };
    const route = /^\/2\/(?:files\/)?([^?]+)/.exec(request.path)?.[1];
    if (String(request.origin) !== this.url || !route || IN_BACKGROUND.test(route)) return;
    this.#routes.push(route);
    this.onCall(route);
  };

  constructor(private readonly url: string) {
    subscribe('undici:request:create', this.#note);
  }

  /** Returns the routes called since the last `take`, in order. */
  take(): string[] {
    return this.#routes.splice(0);
  }

  close(): void {
    unsubscribe('undici:request:create', this.#note);
  }
}

/** Calls of the change feed, which do not depend on clients. */
const IN_BACKGROUND = /^list_folder\/(longpoll|continue|get_latest_cursor)$/;
