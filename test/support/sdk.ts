import { createRequire } from 'node:module';
import { Dropbox, type DropboxResponseError } from 'dropbox';
import { startTestService, type TestService } from './service.ts';

// The SDK's own HTTP client: what it sends is to be what its users send.
const nodeFetch: typeof fetch = createRequire(createRequire(import.meta.url).resolve('dropbox'))(
  'node-fetch',
);

/** A `fetch` for the official SDK: all the real service's hosts are the one port of `service`. */
export function sdkFetch(service: TestService): typeof fetch {
  return (url, init) => {
    const { pathname, search } = new URL(String(url));
    return nodeFetch(`${service.url}${pathname}${search}`, init);
  };
}

/** The official SDK, with notes of what its calls came to. */
export interface SdkClients {
  /** With the service's own token. */
  readonly user: Dropbox;
  /** With the app's key and secret, and no user. */
  readonly app: Dropbox;
  /** With another's token. */
  withToken(accessToken: string): Dropbox;
  /** Of these functions those that were answered, each with the refusals it was seen to give, sorted. */
  driven(functions: readonly string[]): Record<string, string[]>;
}

/** A new service, and the SDK as its user and as its app. */
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

/** What the SDK adds to a download under Node, and its types do not name. */
export function sdkBytesOf(result: object): Buffer {
  return (result as { fileBinary: Buffer }).fileBinary;
}

/** A download's result without the bytes that the SDK adds to it. */
export function sdkResultOf(result: object): Record<string, unknown> {
  const { fileBinary: _, ...told } = result as Record<string, unknown>;
  return told;
}

/** A refusal as the SDK's users see it, in the form that `sdkRefused` makes. */
export async function sdkRefusal(call: Promise<unknown>): Promise<object> {
  const failure = await call.then(
    () => {
      throw new Error('the call succeeded');
    },
    (error: unknown) => error as DropboxResponseError<{ error_summary: string; error: unknown }>,
  );
  // Anything but the service's answer is a fault of the test.
  if (failure.error?.error_summary === undefined) throw failure;
  const { error_summary: summary, error, ...more } = failure.error;
  return { status: failure.status, summary: withoutDots(summary), error, ...more };
}

/**
 * The 409 whose tags are those of `summary`, from outside in, each under a key named like the one around it;
 * `fields` lie flat beside the innermost.
 */
export function sdkRefused(summary: string, fields: object = {}): object {
  return { status: 409, summary, error: sdkError(summary, fields) };
}

/** Likewise the error alone, as in the entries of a batch. */
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
