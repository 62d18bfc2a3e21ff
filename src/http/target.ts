/** The path in a request line, still percent-encoded: without the query, and without a proxy's scheme and host. */
export function pathOfTarget(target: string): string {
  const path = /^[^?#]*/.exec(target)?.[0] ?? '';
  return path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*(?=\/|$)/i, '') || '/';
}

/** The query in a request line, without the question mark. */
export function queryOfTarget(target: string): string {
  return /^[^?#]*\?([^#]*)/.exec(target)?.[1] ?? '';
}
