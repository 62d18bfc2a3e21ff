import { createRequire } from 'node:module';
import type { TestService } from './service.ts';

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

/** What the SDK adds to a download under Node, and its types do not name. */
export function sdkBytesOf(result: object): Buffer {
  return (result as { fileBinary: Buffer }).fileBinary;
}
