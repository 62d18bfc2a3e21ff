import fc from 'fast-check';
import { expect, test } from 'vitest';
import { headerJson, parseHeaderJson } from '../../../src/api/request.ts';

test('what a header cannot hold is escaped: DEL, umlauts, line breaks, pairs of surrogates', () => {
  expect(headerJson({ path: '/ü\u007f\n😀"~' })).toBe('{"path":"/\\u00fc\\u007f\\n\\ud83d\\ude00\\"~"}');
});

test('any text comes back as it went, in printable ASCII', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const header = headerJson({ text });
      expect(header).toMatch(/^[\x20-\x7e]*$/);
      expect(parseHeaderJson(header)).toEqual({ text });
    }),
  );
});

test('raw UTF-8, as other services of this API may send it, is read too', () => {
  const asNodeGivesIt = Buffer.from('{"name":"Übung 😀"}', 'utf8').toString('latin1');
  expect(parseHeaderJson(asNodeGivesIt)).toEqual({ name: 'Übung 😀' });
});

test('what is no JSON throws', () => {
  expect(() => parseHeaderJson('')).toThrow(SyntaxError);
});
