import fc from 'fast-check';
import { expect, test } from 'vitest';
import { headerJson, parseHeaderJson } from '../../../src/api/request.ts';
import { anyCharacter } from '../../support/characters.ts';

test('headerJson escapes DEL, umlauts, line breaks and surrogate pairs', () => {
  expect(headerJson({ path: '/ü\u007f\n😀"~' })).toBe('{"path":"/\\u00fc\\u007f\\n\\ud83d\\ude00\\"~"}');
});

test('headerJson writes any text as printable ASCII, and parseHeaderJson reads it back', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const header = headerJson({ text });
      expect(header).toMatch(/^[\x20-\x7e]*$/);
      expect(parseHeaderJson(header)).toEqual({ text });
    }),
  );
});

test('parseHeaderJson reads raw UTF-8, as other services of this API may send it', () => {
  const asNodeGivesIt = Buffer.from('{"name":"Übung 😀"}', 'utf8').toString('latin1');
  expect(parseHeaderJson(asNodeGivesIt)).toEqual({ name: 'Übung 😀' });
});

test('parseHeaderJson throws for text that is not JSON', () => {
  expect(() => parseHeaderJson('')).toThrow(SyntaxError);
});
