import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeName, encodeName } from '../../../src/util/url-names.ts';

const escaped = (bytes: Iterable<number>) =>
  Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, '0').toUpperCase()}`).join('');

/** The bytes that a segment stands for. */
const bytesOf = (segment: string) =>
  Buffer.from(
    segment.replaceAll(/%(..)|[^%]/g, (one, digits?: string) => digits ?? Buffer.from(one).toString('hex')),
    'hex',
  );

/** Joined in any order, these make quotes, lone bytes, parts of characters, and text that looks like them. */
const PIECES = ['\u201b', 'C3', 'A9', 'c3', 'E2', '82', 'AC', 'F0', '9F', 'é', '€', '😀', 'x', '\u0301'];

describe('names of URLs', () => {
  test.each([
    ['plain.txt', 'plain.txt'],
    ['%C3%A9%20%25', 'é %'],
    ['caf%E9', 'caf\u201bE9'],
    ['%FF%fe', '\u201bFF\u201bFE'],
    ['%C3%C3%A9', '\u201bC3é'],
    ['%E2%82', '\u201bE2\u201b82'],
    // Never a slash or a dot.
    ['%C0%AE%C0%AF', '\u201bC0\u201bAE\u201bC0\u201bAF'],
    ['%ED%A0%80', '\u201bED\u201bA0\u201b80'],
    // A quote, and a quote before digits.
    ['%E2%80%9B', '\u201b'],
    ['%E2%80%9BE9', '\u201b\u201bE9'],
    ['%E2%80%9B41', '\u201b41'],
    ['%E2%80%9B%E9', '\u201b\u201b\u201bE9'],
  ])('the segment %s is the name %j', (segment, name) => {
    expect(decodeName(segment)).toBe(name);
    expect(bytesOf(encodeName(name))).toEqual(bytesOf(segment));
  });

  test.each(['%', '%4', '100%', '%zz', '%E9%z'])('the segment %s is refused', (segment) => {
    expect(() => decodeName(segment)).toThrow(URIError);
  });

  test('any bytes are one name and come back as they were', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.array(fc.constantFrom(0xc3, 0xa9, 0xe2, 0x82, 0xac, 0x80, 0x9b, 0xf0, 0x9f, 0x98, 0x43, 0x33), {
        maxLength: 16,
      }),
      fc
        .array(fc.oneof(fc.constantFrom(...PIECES), fc.constantFrom('%C3', '%A9', '%E2', '%82', '%AC')), {
          maxLength: 12,
        })
        .map((parts) => bytesOf(parts.join(''))),
    );
    fc.assert(
      fc.property(bytes, (sent) => {
        const name = decodeName(escaped(sent));
        expect(name.isWellFormed()).toBe(true);
        expect(bytesOf(encodeName(name))).toEqual(Buffer.from(sent));
      }),
      { numRuns: 5_000 },
    );
  });

  test('any name has bytes of its own, which are that name again, with digits in upper case', () => {
    const names = fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(names, (name) => {
        expect(decodeName(encodeName(name)).toUpperCase()).toBe(name.toUpperCase());
      }),
      { numRuns: 20_000 },
    );
  });
});
