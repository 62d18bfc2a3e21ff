import { expect, test } from 'vitest';
import { joinPieces, readBody } from '../../../src/util/whole-body.ts';

/** Yields texts as bytes, and tells how far they were read. */
class Source {
  readonly yielded: string[] = [];
  isEnded = false;

  async *body(...texts: string[]): AsyncGenerator<Uint8Array> {
    try {
      for (const text of texts) {
        this.yielded.push(text);
        yield Buffer.from(text);
      }
    } finally {
      this.isEnded = true;
    }
  }
}

test('readBody joins all pieces of a body', async () => {
  expect((await readBody(new Source().body('ab', '', 'cde'), 100))?.toString()).toBe('abcde');
});

test('readBody returns an empty buffer for a body without bytes, even with a limit of 0', async () => {
  expect(await readBody(new Source().body(), 0)).toEqual(Buffer.alloc(0));
});

test('readBody accepts a body of exactly the limit', async () => {
  expect((await readBody(new Source().body('abc', 'de'), 5))?.toString()).toBe('abcde');
});

test('readBody returns undefined for a body above the limit, leaves its rest unread and ends the iteration', async () => {
  const source = new Source();
  expect(await readBody(source.body('abc', 'def', 'ghi'), 5)).toBeUndefined();
  expect(source.yielded).toEqual(['abc', 'def']);
  expect(source.isEnded).toBe(true);
});

test('readBody takes a list of pieces as well', async () => {
  expect((await readBody([Buffer.from('ab'), Buffer.from('c')], 3))?.toString()).toBe('abc');
});

test('readBody throws what the body throws', async () => {
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('ab');
    throw new Error('the connection broke');
  }
  await expect(readBody(broken(), 100)).rejects.toThrow('the connection broke');
});

test('joinPieces joins all pieces, and none to an empty buffer', async () => {
  expect((await joinPieces(new Source().body('ab', '', 'cde'))).toString()).toBe('abcde');
  expect(await joinPieces(new Source().body())).toEqual(Buffer.alloc(0));
});
