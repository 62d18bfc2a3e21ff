/** A request refused with one of OAuth's error codes, and a sentence for the app's developer (RFC 6749 §5.2). */
export class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal';

  constructor(
    readonly error:
      | 'invalid_request'
      | 'invalid_client'
      | 'invalid_grant'
      | 'invalid_scope'
      | 'unsupported_grant_type'
      | 'unsupported_response_type'
      | 'access_denied',
    description: string,
  ) {
    super(description);
  }
}

/**
 * Returns the parameters of a request. Throws `OAuthRefusal` for a repeated one; one without a value counts as absent
 * (RFC 6749 §3.1).
 */
export function withoutRepeats(given: Iterable<readonly [string, string]>): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of given) {
    if (value === '') continue;
    if (parameters.has(name))
      throw new OAuthRefusal('invalid_request', `field ${JSON.stringify(name)} given twice`);
    parameters.set(name, value);
  }
  return parameters;
}

/** Throws `OAuthRefusal` for an unknown parameter, as the real service does; RFC 6749 would ignore it. */
export function refuseUnknown(given: ReadonlyMap<string, string>, known: readonly string[]): void {
  const unknown = [...given.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new OAuthRefusal('invalid_request', `unknown field ${JSON.stringify(unknown)}`);
}

/** Returns a parameter that must be present. Throws `OAuthRefusal`. */
export function required(given: ReadonlyMap<string, string>, name: string): string {
  const value = given.get(name);
  if (value === undefined) throw new OAuthRefusal('invalid_request', `missing required field "${name}"`);
  return value;
}

/** Returns a parameter that has one of these values; the first when it is absent. Throws `OAuthRefusal`. */
export function oneOf<W extends string>(
  given: ReadonlyMap<string, string>,
  name: string,
  words: readonly [W, ...W[]],
): W {
  const value = given.get(name);
  if (value === undefined) return words[0];
  const word = words.find((one) => one === value);
  if (word === undefined)
    throw new OAuthRefusal(
      'invalid_request',
      `${name} must be ${words.map((one) => `"${one}"`).join(' or ')}`,
    );
  return word;
}
