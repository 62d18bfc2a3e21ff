import { describe, expect, test } from 'vitest';
import { readBmp } from '../../../../src/service/thumbnails/bmp.ts';
import { UnreadableImage } from '../../../../src/service/thumbnails/pixels.ts';
import { readPpm } from '../../../../src/service/thumbnails/ppm.ts';

interface BitmapParts {
  readonly width?: number;
  readonly height?: number;
  readonly bits: number;
  readonly compression?: number;
  /** Masks or a palette, which follow the header of 40 bytes. */
  readonly tables?: readonly number[];
  readonly rows: readonly number[];
}

function bitmap({ width = 2, height = 2, bits, compression = 0, tables = [], rows }: BitmapParts): Buffer {
  const header = Buffer.alloc(54);
  header.write('BM', 0);
  header.writeUInt32LE(54 + tables.length, 10);
  header.writeUInt32LE(40, 14);
  header.writeInt32LE(width, 18);
  header.writeInt32LE(height, 22);
  header.writeUInt16LE(1, 26);
  header.writeUInt16LE(bits, 28);
  header.writeUInt32LE(compression, 30);
  return Buffer.concat([header, Buffer.from(tables), Buffer.from(rows)]);
}

const hex = ({ rgb }: { rgb: Buffer }) => rgb.toString('hex').match(/.{6}/g)?.join(' ');
/** Red, green, blue and white, from the top left. */
const FOUR = 'ff0000 00ff00 0000ff ffffff';

const bottomUp24 = [255, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0];

describe('readBmp', () => {
  test('readBmp reads 24-bit bitmaps, bottom-up and top-down', async () => {
    expect(hex(readBmp(bitmap({ bits: 24, rows: bottomUp24 })))).toBe(FOUR);
    const topDown = [...bottomUp24.slice(8), ...bottomUp24.slice(0, 8)];
    expect(hex(readBmp(bitmap({ bits: 24, height: -2, rows: topDown })))).toBe(FOUR);
  });

  test('readBmp reads 32-bit bitmaps', async () => {
    const rows = [255, 0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 0, 0, 255, 0, 0];
    expect(hex(readBmp(bitmap({ bits: 32, rows })))).toBe(FOUR);
  });

  test('readBmp reads 16-bit bitmaps, with default and with explicit masks', async () => {
    const usual = [0x1f, 0, 0xff, 0x7f, 0, 0x7c, 0xe0, 0x03];
    expect(hex(readBmp(bitmap({ bits: 16, rows: usual })))).toBe(FOUR);
    const masks = [0, 0xf8, 0, 0, 0xe0, 0x07, 0, 0, 0x1f, 0, 0, 0];
    const rows = [0x1f, 0, 0xff, 0xff, 0, 0xf8, 0xe0, 0x07];
    expect(hex(readBmp(bitmap({ bits: 16, compression: 3, tables: masks, rows })))).toBe(FOUR);
  });

  test('readBmp reads bitmaps with palettes of 1, 4 and 8 bits', async () => {
    const palette = [0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0];
    const of = (bits: number, rows: number[]) => hex(readBmp(bitmap({ bits, tables: palette, rows })));
    expect(of(8, [2, 3, 0, 0, 0, 1, 0, 0])).toBe(FOUR);
    expect(of(4, [0x23, 0, 0, 0, 0x01, 0, 0, 0])).toBe(FOUR);
    expect(of(1, [0x40, 0, 0, 0, 0x80, 0, 0, 0])).toBe('00ff00 ff0000 ff0000 00ff00');
  });

  test.each([
    ['cut off', bitmap({ bits: 24, rows: bottomUp24 }).subarray(0, 60)],
    ['without a header', Buffer.from('BM')],
    ['of no width', bitmap({ bits: 24, width: 0, rows: [] })],
    ['of a negative width', bitmap({ bits: 24, width: -1, rows: bottomUp24 })],
    ['larger than its file', bitmap({ bits: 24, width: 0x7fffffff, height: 0x7fffffff, rows: bottomUp24 })],
    ['of 5 bits', bitmap({ bits: 5, rows: bottomUp24 })],
    ['compressed', bitmap({ bits: 8, compression: 1, rows: bottomUp24 })],
    ['whose palette is missing', bitmap({ bits: 8, rows: [200, 200, 0, 0, 200, 200, 0, 0] })],
  ])('a bitmap %s is unreadable', async (_, bytes) => {
    expect(() => readBmp(bytes)).toThrow(UnreadableImage);
  });
});

describe('readPpm', () => {
  const bytesOf = (head: string, samples: number[]) =>
    Buffer.concat([Buffer.from(head), Buffer.from(samples)]);
  const samples = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];

  test('readPpm reads binary pixmaps with comments in the header', async () => {
    expect(hex(readPpm(bytesOf('P6\n# made by hand\n2 2\n255\n', samples)))).toBe(FOUR);
  });

  test('readPpm reads binary pixmaps with two-byte samples and with other maximums', async () => {
    const wide = samples.flatMap((sample) => [sample, sample]);
    expect(hex(readPpm(bytesOf('P6 2 2 65535\n', wide)))).toBe(FOUR);
    expect(hex(readPpm(bytesOf('P6 1 1 15\n', [15, 0, 5])))).toBe('ff0055');
  });

  test('readPpm reads pixmaps in decimal digits', async () => {
    expect(hex(readPpm(Buffer.from('P3 2 2 9\n9 0 0  0 9 0\n0 0 9\n9 9 9')))).toBe(FOUR);
  });

  test.each([
    'P5 1 1 255\n.',
    'P6 2 2 255\n..',
    'P6 0 2 255\n',
    'P6 2 x',
    'P3 1 1 9 1 2',
    'P6 1 1 0\n...',
    'P6 99999 99999 255\n',
    'P3 99999 99999 255\n1',
  ])('the pixmap %j is unreadable', async (text) => {
    expect(() => readPpm(Buffer.from(text))).toThrow(UnreadableImage);
  });
});

test('a pixmap of 20 MB of white space is unreadable', async () => {
  const bytes = Buffer.concat([Buffer.from('P3 1 1 9 '), Buffer.alloc(20_000_000, ' ')]);
  expect(() => readPpm(bytes)).toThrow(UnreadableImage);
});
