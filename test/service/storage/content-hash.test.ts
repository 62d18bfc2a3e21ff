import { expect, test } from 'vitest';
import { body, bytesOf, commit, HOME, opened } from './opened.ts';

const MIB = 1024 * 1024;

/** Byte i is i mod 251. */
function pattern(sizeBytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: sizeBytes }, (_, index) => index % 251));
}

// The examples of service-api.md §10.
test.each([
  ['empty', Buffer.alloc(0), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  ['0x00', Buffer.alloc(1), '1406e05881e299367766d313e26c05564ec91bf721d31726bd6e46e60689539a'],
  ['a', Buffer.from('a'), 'bf5d3affb73efd2ec6c36ad3112dd933efed63c4e1cbffcfa88e2759c144f2d8'],
  [
    'Hello Dropbox!',
    Buffer.from('Hello Dropbox!'),
    '16dff8700700b9aa627e24bbf832940c084b41ade5c5d6fe5417963a547ed9c2',
  ],
  [
    'zeros, 4 MiB - 1',
    Buffer.alloc(4 * MIB - 1),
    '839e2d868a885f260431d186466f0f3c189ee0eee5cc444b54e717740ad7f1c3',
  ],
  ['zeros, 4 MiB', Buffer.alloc(4 * MIB), 'c7e946d101855255d919ef0c70718633adf77d3dfb3adeeecf5d0cb4e951be58'],
  [
    'zeros, 4 MiB + 1',
    Buffer.alloc(4 * MIB + 1),
    '14a4d47f23a30177885d9820122f17d2d3a55fe63f7f5c27b95f689e0b2accd6',
  ],
  ['pattern, 4 MiB', pattern(4 * MIB), 'b9654428408015906b44a00935b70af33830aa344b780b0eabd535a133150d04'],
  [
    'pattern, 4 MiB + 1',
    pattern(4 * MIB + 1),
    '4a6cc0a344febaa07772e7c974834b2fb1d24594d4ba15f27c97a54699709f44',
  ],
  ['pattern, 8 MiB', pattern(8 * MIB), 'b76a633d9733b991a976dba723df6940bfaf789390a929fe8f68fd1b4705c8c1'],
  ['pattern, 10 MiB', pattern(10 * MIB), '9b168152f37a1b2c33d9b26ca4a679d5f99f84f8c070fd3a4491d52cbfe96af4'],
  [
    'zeros, 10 MiB',
    Buffer.alloc(10 * MIB),
    'cfbbdae2c77066b55ee0bca512cfca2299904017a44f1dc362f4cc4e3924925d',
  ],
])(
  'the content %s has the content hash of the specification and reads back the same',
  async (_, bytes, hash) => {
    const storage = await opened();
    const odd = [bytes.subarray(0, 1_000_003), bytes.subarray(1_000_003)];
    const file = await storage.upload(HOME, commit('/file'), { ...body(...odd), contentHash: hash });
    expect(file).toMatchObject({ contentHash: hash, sizeBytes: bytes.length });
    expect((await bytesOf(storage.read(HOME, file, undefined))).equals(bytes)).toBe(true);
  },
);
