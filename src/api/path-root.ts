import type { Log } from '../util/log.ts';
import { SingleFlight } from '../util/single-flight.ts';
import { ApiError } from './errors.ts';
import { type CallRequest, headerJson } from './request.ts';

/** Where the paths of a drive begin, as `--namespace` names it: the account's home, its root, or a number. */
export type Namespace = string;

/**
 * The namespace in which the paths of all calls begin, for every namespace but the home. The service has to be told with
 * each call (`Dropbox-API-Path-Root`), cursors included; the long poll, which has no token, is the only exception.
 */
export class PathRoot {
  readonly #asking = new SingleFlight<'root', string>();
  #header: string | undefined;
  #refusal: ApiError | undefined;

  /** `rootOf` returns the root of a token's account, `undefined` if the service does not tell it. */
  constructor(
    namespace: Namespace,
    private readonly rootOf: (token: string, signal: AbortSignal) => Promise<string | undefined>,
    private readonly log: Log,
  ) {
    if (namespace !== 'root') this.#header = headerJson({ '.tag': 'namespace_id', namespace_id: namespace });
  }

  /**
   * Returns `request` with the header, if its function takes a path. Throws `wrong-namespace` if the account's root is
   * unknown or has changed.
   */
  async addressed(request: CallRequest, token: string, signal: AbortSignal): Promise<CallRequest> {
    if (request.route.startsWith('users/')) return request;
    if (this.#refusal) throw this.#refusal;
    this.#header ??= await this.#asking.run('root', (stop) => this.#askRoot(token, stop), signal);
    return { ...request, headers: { ...request.headers, 'dropbox-api-path-root': this.#header } };
  }

  /** Must be called when the service refused the header. After another root no call is made, so that none goes there. */
  refused(error: ApiError): void {
    // More tags may follow the first.
    if (this.#refusal || error.details.summary?.split('/')[0] !== 'invalid_root') return;
    const message = `the account was moved to another root; restart davgate, which then serves the new one or says which writes are pending (${error.message})`;
    this.#refusal = new ApiError('wrong-namespace', message, { ...error.details, isUndone: true });
    this.log.error('the root of the account has changed; no calls are made', { reason: message });
  }

  async #askRoot(token: string, signal: AbortSignal): Promise<string> {
    const root = await this.rootOf(token, signal);
    if (root === undefined) throw new ApiError('wrong-namespace', ROOT_UNKNOWN);
    return headerJson({ '.tag': 'root', root });
  }
}

/** Why `--namespace root` cannot be served. */
export const ROOT_UNKNOWN =
  "the service does not say which namespace is the account's root; give the app the scope account_info.read, or write the namespace's number";
