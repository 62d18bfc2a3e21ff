import fc from 'fast-check';

const SURROGATES = 0x800;

/**
 * Any Unicode character. The unit `binary` of `fc.string` is the same, and takes three seconds to set up in each process,
 * in order to shrink.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((number) => String.fromCodePoint(number < 0xd800 ? number : number + SURROGATES));
