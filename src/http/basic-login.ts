/** A name and password as a client sent them. */
export interface Login {
  readonly name: string;
  readonly password: string;
}

const BASIC = /^basic +([a-z0-9+/]+={0,2})$/i;

/**
 * Parses an `Authorization` header of the Basic scheme (RFC 7617 §2); `undefined` for any other or malformed one. The
 * name ends at the first colon; the password may contain more of them.
 */
export function parseBasic(authorization: string): Login | undefined {
  const encoded = BASIC.exec(authorization.trim())?.[1];
  if (encoded === undefined) return undefined;
  const text = decode(Buffer.from(encoded, 'base64')).normalize('NFC');
  const colon = text.indexOf(':');
  // Control characters are forbidden (RFC 7617 §2); a NUL would let a prefix of a name pass as that name.
  if (colon < 1 || /\p{Cc}/u.test(text)) return undefined;
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Decodes UTF-8, which we ask for, or else Windows-1252, which older Windows clients send. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes
      .toString('latin1')
      .replace(/[\u0080-\u009f]/g, (character) => WINDOWS_1252[character.charCodeAt(0) - 0x80] ?? character);
  }
}

/** Windows-1252 from 0x80 to 0x9f, where it differs from Latin-1. The decoder of some Node versions ignores that. */
const WINDOWS_1252 = [...'€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'];
