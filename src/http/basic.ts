/** What a client says who it is; nothing of it is checked. */
export interface Login {
  readonly name: string;
  readonly password: string;
}

const CREDENTIALS = /^basic +([a-z0-9+/]+={0,2})$/i;

/**
 * The login in an `Authorization` header of the Basic scheme (RFC 7617 §2); `undefined` when there is none
 * that can be read. The name ends at the first colon; a password may hold more of them.
 */
export function parseBasic(authorization: string): Login | undefined {
  const encoded = CREDENTIALS.exec(authorization.trim())?.[1];
  if (encoded === undefined) return undefined;
  const text = decode(Buffer.from(encoded, 'base64')).normalize('NFC');
  const colon = text.indexOf(':');
  // Control characters are forbidden (RFC 7617 §2); a NUL would let a prefix of a name pass as that name.
  if (colon < 1 || /\p{Cc}/u.test(text)) return undefined;
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** UTF-8, as we ask for; what is none comes from older Windows clients, which use their code page. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes
      .toString('latin1')
      .replace(/[\u0080-\u009f]/g, (character) => WINDOWS_1252[character.charCodeAt(0) - 0x80] ?? character);
  }
}

/** What Windows-1252 has at 0x80 to 0x9f; else it is Latin-1. Some Nodes' decoder takes it for Latin-1 here too. */
const WINDOWS_1252 = [...'€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'];
