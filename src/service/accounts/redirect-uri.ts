/** Long enough for every address in use. */
const URI_MAX_CHARACTERS = 2000;

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** A private-use scheme has a dot or a hyphen, which none that a browser acts on by itself has (RFC 8252 §7.1). */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+]*[.-][a-z0-9+.-]*:$/;

/**
 * Why no code may be sent to this address, as the end of a sentence; `undefined` where one may: over https, to the
 * person's own machine, or to a program that has a scheme of its own.
 */
export function redirectUriProblem(uri: string): string | undefined {
  if (uri.length > URI_MAX_CHARACTERS) return `is longer than ${URI_MAX_CHARACTERS} characters`;
  // The address goes into a header as it is written.
  if (!/^[!-~]+$/.test(uri) || !URL.canParse(uri)) return 'is no absolute address';
  if (uri.includes('#')) return 'has a fragment (#…), which codes cannot be sent to';
  const { protocol, hostname, username, password } = new URL(uri);
  if (username !== '' || password !== '') return 'has a user name in it';
  if (protocol === 'https:' || PRIVATE_SCHEME.test(protocol)) return undefined;
  if (protocol === 'http:' && LOOPBACK.has(hostname)) return undefined;
  return 'must begin with https://, with http://localhost or http://127.0.0.1, or with a scheme of the app like com.example.app:';
}
