import { createRequire } from 'node:module';
import { Dropbox, type DropboxResponseError } from 'dropbox';
import { startTestService, type TestService } from './service.ts';

// The SDK's own HTTP client, so that the tests send what its users send.
const nodeFetch: typeof fetch = createRequire(createRequire(import.meta.url).resolve('dropbox'))(
  'node-fetch',
);

/** Returns a `fetch` for the official SDK that sends all hosts to the one port of `service`. */
export function sdkFetch(service: TestService): typeof fetch {
  return (url, init) => {
    const { pathname, search } = new URL(String(url));
    return nodeFetch(`${service.url}${pathname}${search}`, init);
  };
}

/** The official SDK, with a record of the calls and their outcomes. */
export interface SdkClients {
  /** Client with the service's default token. */
  readonly user: Dropbox;
  /** Client with the app's key and secret, without a user. */
  readonly app: Dropbox;
  /** Returns a client with another token. */
  withToken(accessToken: string): Dropbox;
  /** Returns those of the functions that were called, each with its sorted refusals. */
  driven(functions: readonly string[]): Record<string, string[]>;
}

/** Starts a service. Returns it with SDK clients as a user and as an app. */
export async function startSdkService(options: Parameters<typeof startTestService>[0] = {}) {
  const service = await startTestService(options);
  const clients = sdkClients(service);
  return { service, clients, sdk: clients.user, app: clients.app };
}

export function sdkClients(service: TestService): SdkClients {
  const answered = new Set<string>();
  const refused = new Map<string, Set<string>>();
  const plain = sdkFetch(service);
  const noting: typeof fetch = async (url, init) => {
    const name = new URL(String(url)).pathname.slice('/2/'.length);
    const response = await plain(url, init);
    if (response.ok) answered.add(name);
    else if (response.status === 409) {
      const { error_summary: summary } = (await response.clone().json()) as { error_summary: string };
      refused.set(name, (refused.get(name) ?? new Set()).add(withoutDots(summary)));
    }
    return response;
  };
  const withToken = (accessToken: string) => new Dropbox({ accessToken, fetch: noting });
  return {
    user: withToken(service.token),
    withToken,
    app: new Dropbox({ clientId: service.appKey, clientSecret: service.appSecret, fetch: noting }),
    driven: (functions) =>
      Object.fromEntries(
        functions
          .filter((name) => answered.has(name))
          .map((name) => [name, Array.from(refused.get(name) ?? []).sort()]),
      ),
  };
}

/** Returns the bytes that the SDK adds to a download under Node, which its types lack. */
export function sdkBytesOf(result: object): Buffer {
  return (result as { fileBinary: Buffer }).fileBinary;
}

/** Returns the result of a download without its bytes. */
export function sdkResultOf(result: object): Record<string, unknown> {
  const { fileBinary: _, ...rest } = result as Record<string, unknown>;
  return rest;
}

/** Returns the refusal of an SDK call, to compare with `sdkRefused`. */
export async function sdkRefusal(call: Promise<unknown>): Promise<object> {
  const failure = await call.then(
    () => {
      throw new Error('the call succeeded');
    },
    (error: unknown) => error as DropboxResponseError<{ error_summary: string; error: unknown }>,
  );
  // An error without an answer of the service fails the test.
  if (failure.error?.error_summary === undefined) throw failure;
  const { error_summary: summary, error, ...more } = failure.error;
  return { status: failure.status, summary: withoutDots(summary), error, ...more };
}

/**
 * Returns the 409 with the tags of `summary`, from the outermost in, each under the key of the one around it,
 * and `fields` beside the innermost.
 */
export function sdkRefused(summary: string, fields: object = {}): object {
  return { status: 409, summary, error: sdkError(summary, fields) };
}

/** Returns the error of `sdkRefused` alone, as in entries of a batch. */
export function sdkError(summary: string, fields: object = {}): object {
  const [innermost, ...outer] = summary.split('/').reverse();
  return outer.reduce<object>((inner, tag) => ({ '.tag': tag, [tag]: inner }), {
    '.tag': innermost,
    ...fields,
  });
}

function withoutDots(summary: string): string {
  return summary.replace(/\/\.{0,3}$/, '');
}
