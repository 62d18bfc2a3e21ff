import { emptyPixels, type Pixels, UnreadableImage } from './pixels.ts';

/** The bits of a pixel that hold one colour. */
interface Channel {
  readonly shift: number;
  readonly max: number;
}

interface Header {
  readonly width: number;
  /** Negative when the rows go from the top down. */
  readonly height: number;
  readonly bitsPerPixel: number;
  readonly paletteStart: number;
  readonly paletteEntryBytes: 3 | 4;
  readonly pixelsStart: number;
  /** Red, green, blue; only for images without a palette. */
  readonly channels: readonly Channel[];
}

const FILE_HEADER_BYTES = 14;
const CORE_HEADER_BYTES = 12;
const NOT_COMPRESSED = 0;
const BIT_FIELDS = 3;

/** Reads a Windows bitmap (BITMAPCOREHEADER, BITMAPINFOHEADER and later), uncompressed. Throws `UnreadableImage`. */
export function readBmp(bytes: Buffer): Pixels {
  try {
    return pixelsOf(bytes, headerOf(bytes));
  } catch (error) {
    // A read outside of the file.
    if (error instanceof RangeError) throw new UnreadableImage('the bitmap is cut off');
    throw error;
  }
}

function headerOf(bytes: Buffer): Header {
  const headerBytes = bytes.readUInt32LE(FILE_HEADER_BYTES);
  const pixelsStart = bytes.readUInt32LE(10);
  const paletteStart = FILE_HEADER_BYTES + headerBytes;
  if (headerBytes === CORE_HEADER_BYTES)
    return {
      width: bytes.readUInt16LE(18),
      height: bytes.readUInt16LE(20),
      bitsPerPixel: bytes.readUInt16LE(24),
      paletteStart,
      paletteEntryBytes: 3,
      pixelsStart,
      channels: usualChannels(bytes.readUInt16LE(24)),
    };
  const bitsPerPixel = bytes.readUInt16LE(28);
  const compression = bytes.readUInt32LE(30);
  if (compression !== NOT_COMPRESSED && compression !== BIT_FIELDS)
    throw new UnreadableImage('the bitmap is compressed');
  return {
    width: bytes.readInt32LE(18),
    height: bytes.readInt32LE(22),
    bitsPerPixel,
    paletteStart,
    paletteEntryBytes: 4,
    pixelsStart,
    channels:
      compression === BIT_FIELDS
        ? [54, 58, 62].map((place) => channelOf(bytes.readUInt32LE(place)))
        : usualChannels(bitsPerPixel),
  };
}

function usualChannels(bitsPerPixel: number): readonly Channel[] {
  const masks = bitsPerPixel === 16 ? [0x7c00, 0x03e0, 0x001f] : [0xff0000, 0xff00, 0xff];
  return masks.map(channelOf);
}

function channelOf(mask: number): Channel {
  if (mask === 0) return { shift: 0, max: 0 };
  const shift = 31 - Math.clz32(mask & -mask);
  return { shift, max: mask >>> shift };
}

function pixelsOf(bytes: Buffer, header: Header): Pixels {
  const { width, bitsPerPixel, pixelsStart } = header;
  if (![1, 4, 8, 16, 24, 32].includes(bitsPerPixel))
    throw new UnreadableImage(`a bitmap does not have ${bitsPerPixel} bits a pixel`);
  const height = Math.abs(header.height);
  const rowBytes = Math.ceil((width * bitsPerPixel) / 32) * 4;
  // Checked before memory is allocated: a short file could claim a large image.
  if (pixelsStart + rowBytes * height > bytes.length) throw new UnreadableImage('the bitmap is cut off');
  const pixels = emptyPixels(width, height);
  const colourAt = bitsPerPixel <= 8 ? paletteColours(bytes, header) : directColours(bytes, header);
  for (let pixel = 0; pixel < width * height; pixel++) {
    const y = Math.floor(pixel / width);
    const rowStart = pixelsStart + rowBytes * (header.height < 0 ? y : height - 1 - y);
    pixels.rgb.writeUIntBE(colourAt(rowStart, pixel % width), pixel * 3, 3);
  }
  return pixels;
}

/** The colour, as 0xRRGGBB, of the pixel `x` in the row that starts at `rowStart`. */
type ColourAt = (rowStart: number, x: number) => number;

function paletteColours(bytes: Buffer, { bitsPerPixel, paletteStart, paletteEntryBytes }: Header): ColourAt {
  const mask = (1 << bitsPerPixel) - 1;
  return (rowStart, x) => {
    const bit = x * bitsPerPixel;
    const entry = (bytes.readUInt8(rowStart + (bit >> 3)) >> (8 - bitsPerPixel - (bit & 7))) & mask;
    return bytes.readUIntLE(paletteStart + entry * paletteEntryBytes, 3);
  };
}

function directColours(bytes: Buffer, { bitsPerPixel, channels }: Header): ColourAt {
  const pixelBytes = bitsPerPixel / 8;
  return (rowStart, x) => {
    const value = bytes.readUIntLE(rowStart + x * pixelBytes, pixelBytes);
    return channels.reduce((colour, { shift, max }) => {
      const part = max === 0 ? 0 : Math.round((((value >>> shift) & max) * 255) / max);
      return colour * 256 + part;
    }, 0);
  };
}
