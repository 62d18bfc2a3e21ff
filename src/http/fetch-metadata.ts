import type { IncomingMessage } from 'node:http';
import type { Refusal } from './refusal.ts';

/** Keeps browsers from handing an answer to another site's page, as a script or an image for one. */
export const RESOURCE_POLICY = { 'Cross-Origin-Resource-Policy': 'same-origin' } as const;

/**
 * Refuses a request that a browser sends for another site's page, by what it says itself (Fetch Metadata): such a page may
 * lead its visitor to a file, but not load it into itself. Programs other than browsers say nothing of it.
 */
export function crossSiteRefusal(
  { method, headers }: IncomingMessage,
  allowedOrigins: readonly string[],
): Refusal | undefined {
  const site = headers['sec-fetch-site'];
  if (site !== 'cross-site' && site !== 'same-site') return undefined;
  const isNavigation =
    method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  if (isNavigation || allowedOrigins.includes(headers.origin ?? '')) return undefined;
  return {
    status: 403,
    text: "Another site's page asked for this. Open it in a window of its own, or allow that site with --cors-origin.",
  };
}
