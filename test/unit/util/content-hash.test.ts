import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { BLOCK_BYTES, ContentHasher, contentHashOf } from '../../../src/util/content-hash.ts';

const zeros = (size: number) => Buffer.alloc(size);
const pattern = (size: number) =>
  Buffer.from(Array.from({ length: 251 }, (_, i) => i))
    .toString('latin1')
    .repeat(Math.ceil(size / 251))
    .slice(0, size);
const counted = (size: number) => Buffer.from(pattern(size), 'latin1');

/** The service's published and computed test vectors (service-api §10). */
const VECTORS: [string, Buffer, string][] = [
  ['nothing', zeros(0), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  ['one zero byte', zeros(1), '1406e05881e299367766d313e26c05564ec91bf721d31726bd6e46e60689539a'],
  ['the letter a', Buffer.from('a'), 'bf5d3affb73efd2ec6c36ad3112dd933efed63c4e1cbffcfa88e2759c144f2d8'],
  [
    'the recorded greeting',
    Buffer.from('Hello Dropbox!'),
    '16dff8700700b9aa627e24bbf832940c084b41ade5c5d6fe5417963a547ed9c2',
  ],
  [
    'zeros, a block less one',
    zeros(BLOCK_BYTES - 1),
    '839e2d868a885f260431d186466f0f3c189ee0eee5cc444b54e717740ad7f1c3',
  ],
  ['zeros, a block', zeros(BLOCK_BYTES), 'c7e946d101855255d919ef0c70718633adf77d3dfb3adeeecf5d0cb4e951be58'],
  [
    'zeros, a block and one',
    zeros(BLOCK_BYTES + 1),
    '14a4d47f23a30177885d9820122f17d2d3a55fe63f7f5c27b95f689e0b2accd6',
  ],
  [
    'counted, a block',
    counted(BLOCK_BYTES),
    'b9654428408015906b44a00935b70af33830aa344b780b0eabd535a133150d04',
  ],
  [
    'counted, a block and one',
    counted(BLOCK_BYTES + 1),
    '4a6cc0a344febaa07772e7c974834b2fb1d24594d4ba15f27c97a54699709f44',
  ],
  [
    'counted, two blocks',
    counted(2 * BLOCK_BYTES),
    'b76a633d9733b991a976dba723df6940bfaf789390a929fe8f68fd1b4705c8c1',
  ],
  [
    'counted, two blocks and a half',
    counted(2.5 * BLOCK_BYTES),
    '9b168152f37a1b2c33d9b26ca4a679d5f99f84f8c070fd3a4491d52cbfe96af4',
  ],
  [
    'zeros, two blocks and a half',
    zeros(2.5 * BLOCK_BYTES),
    'cfbbdae2c77066b55ee0bca512cfca2299904017a44f1dc362f4cc4e3924925d',
  ],
];

describe.each(VECTORS)('content hash of %s', (_, bytes, expected) => {
  test('the content hash in one piece is the expected one', () =>
    expect(contentHashOf(bytes)).toBe(expected));

  test('the content hash in uneven pieces is the expected one', () => {
    const hasher = new ContentHasher();
    for (let offset = 0; offset < bytes.length; offset += 1_000_003)
      hasher.update(bytes.subarray(offset, offset + 1_000_003));
    expect(hasher.digest()).toBe(expected);
  });

  test('the content hash from the hashes of its blocks is the expected one', () => {
    const hasher = new ContentHasher();
    for (let offset = 0; offset < bytes.length; offset += BLOCK_BYTES)
      hasher.addBlock(
        createHash('sha256')
          .update(bytes.subarray(offset, offset + BLOCK_BYTES))
          .digest(),
      );
    expect(hasher.digest()).toBe(expected);
  });
});

test('a block hash inside a block is refused', () => {
  expect(() => new ContentHasher().update(zeros(1)).addBlock(zeros(32))).toThrow(/block boundary/);
});
