import { emptyPixels, type Pixels, UnreadableImage } from './pixels.ts';

const NUMBER = /\d{1,9}/y;
const BLANKS = new Set(' \t\v\f');
/** Maximum length of a header, in bytes; longer ones only contain comments. */
const HEADER_BYTES_MAX = 64 * 1024;

/** Reads a portable pixmap (`P6`, and `P3` in digits). Throws `UnreadableImage`. */
export function readPpm(bytes: Buffer): Pixels {
  const kind = bytes.toString('latin1', 0, 2);
  if (kind !== 'P6' && kind !== 'P3') throw new UnreadableImage('this is not a portable pixmap');
  const head = bytes.toString('latin1', 0, HEADER_BYTES_MAX);
  const numbers = numbersIn(head, 2);
  const [width, height, max] = [numbers.next(), numbers.next(), numbers.next()];
  if (max < 1 || max > 0xffff) throw new UnreadableImage('a pixmap’s colours end between 1 and 65535');
  const count = width * height;
  const samples =
    kind === 'P6'
      ? binarySamples(bytes, numbers.end() + 1, max, count * SAMPLES)
      : textSamples(bytes, numbers.end(), count * SAMPLES);
  const pixels = emptyPixels(width, height);
  for (let index = 0; index < count * SAMPLES; index++)
    pixels.rgb[index] = Math.min(255, Math.round((samples(index) * 255) / max));
  return pixels;
}

/** Samples of a pixel: red, green and blue. */
const SAMPLES = 3;

/** Returns the samples in their order; each is read once. */
type Samples = (index: number) => number;

function binarySamples(bytes: Buffer, start: number, max: number, count: number): Samples {
  const sampleBytes = max > 0xff ? 2 : 1;
  if (start + count * sampleBytes > bytes.length) throw new UnreadableImage('the pixmap is cut off');
  return (index) => bytes.readUIntBE(start + index * sampleBytes, sampleBytes);
}

function textSamples(bytes: Buffer, start: number, count: number): Samples {
  // A sample takes at least a digit and a space: a short file must not claim a large image.
  if (start + count * 2 > bytes.length + 1) throw new UnreadableImage('the pixmap is cut off');
  const numbers = numbersIn(bytes.toString('latin1'), start);
  return () => numbers.next();
}

function numbersIn(text: string, start: number): { next(): number; end(): number } {
  let place = start;
  return {
    next() {
      NUMBER.lastIndex = afterGap(text, place);
      const match = NUMBER.exec(text);
      if (!match) throw new UnreadableImage('the pixmap is cut off, or has letters among its numbers');
      place = NUMBER.lastIndex;
      return Number(match[0]);
    },
    end: () => place,
  };
}

/**
 * Returns the offset after white space and comments. Not a regular expression, because one that skips megabytes of them
 * overflows the stack.
 */
function afterGap(text: string, start: number): number {
  let isComment = false;
  for (let place = start; place < text.length; place++) {
    const character = text.charAt(place);
    if (character === '\n' || character === '\r') isComment = false;
    else if (character === '#') isComment = true;
    else if (!isComment && !BLANKS.has(character)) return place;
  }
  return text.length;
}
