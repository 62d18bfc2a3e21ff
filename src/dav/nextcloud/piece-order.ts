import type { Piece } from '../../state/pieces/stored-upload.ts';
import { DavError } from '../errors.ts';

/**
 * The names that clients give pieces: their number (Nextcloud's second version, from 1), their number from 0 or their offset
 * (the first version), or their first and last byte (rclone).
 */
const NAME = /^(\d{1,15}|0\d{15,17})(-\d{1,18})?$/;

export function isPieceName(name: string): boolean {
  return NAME.test(name);
}

/**
 * Returns the pieces of a file in their order. Throws `DavError` 400 if one is missing, as far as their names or
 * `totalBytes`, the size that the client has announced, tell.
 */
export function piecesInOrder(pieces: readonly Piece[], totalBytes: number | undefined): readonly Piece[] {
  if (pieces.length === 0) throw new DavError(400, 'the upload has no pieces; send them first');
  const ordered = [...pieces].sort((one, other) => numberOf(one) - numberOf(other));
  const numbers = ordered.map(numberOf);
  const twice = numbers.findIndex((number, index) => number === numbers[index + 1]);
  const [first, second] = [ordered[twice], ordered[twice + 1]];
  if (first && second)
    throw new DavError(
      400,
      `the pieces ${first.name} and ${second.name} have the same place; delete the upload`,
    );
  const offsets = offsetsOf(ordered);
  const sizeBytes = (offsets.at(-1) ?? 0) + (ordered.at(-1)?.sizeBytes ?? 0);
  if (totalBytes !== undefined && totalBytes !== sizeBytes)
    throw new DavError(
      400,
      `the pieces have ${sizeBytes} bytes and not the ${totalBytes} of OC-Total-Length; send what is missing first`,
    );
  const start = numbers[0] === 0 ? 0 : 1;
  const areNumbered =
    !ordered.some(({ name }) => name.includes('-')) &&
    numbers.every((number, index) => number === index + start);
  const areOffsets = numbers.every((number, index) => number === offsets[index]);
  if (totalBytes === undefined && !areNumbered && !areOffsets)
    throw new DavError(400, `a piece is missing among ${rangeOf(ordered)}; send it first`);
  return ordered;
}

function numberOf({ name }: Piece): number {
  return Number(NAME.exec(name)?.[1]);
}

/** Returns the offset of each piece in the file. */
function offsetsOf(pieces: readonly Piece[]): number[] {
  let nextByte = 0;
  return pieces.map(({ sizeBytes }) => {
    const offset = nextByte;
    nextByte += sizeBytes;
    return offset;
  });
}

function rangeOf(pieces: readonly Piece[]): string {
  return `${pieces[0]?.name} to ${pieces.at(-1)?.name}`;
}
