import { foldName } from '../util/path.ts';
import { isPart, partsOf, wholeNames } from './long-names.ts';

/** How the names of the drive are written at the service, which does not take all names. */
export interface WireNames {
  /** Returns the name at the service. A name that is too long becomes several, each in the folder that the one before names. */
  toWire(name: string): readonly string[];
  /** Returns the names in the drive that the names on a path at the service stand for. Throws `PathError` if there are none. */
  fromWire(names: readonly string[]): readonly string[];
  /** Returns whether a name at the service is only a part of names in the drive. */
  isPart(name: string): boolean;
}

/** Names are the same in the drive and at the service, which refuses those that it does not take. */
export const SAME_NAMES: WireNames = {
  toWire: (name) => [name],
  fromWire: (names) => names,
  isPart: () => false,
};

/** Marks a substitute that stands for itself. */
const QUOTE = '\u201b';

/** The substitute of each character that the service refuses, as rclone's Dropbox backend has them. */
const SUBSTITUTES: ReadonlyMap<string, string> = new Map([
  ['\\', '\uff3c'],
  ['\x7f', '\u2421'],
]);

/** The service refuses a blank at the end of a name alone. */
const BLANK = ' ';
const BLANK_SUBSTITUTE = '\u2420';

const REFUSED: ReadonlyMap<string, string> = new Map(
  Array.from([...SUBSTITUTES, [BLANK, BLANK_SUBSTITUTE]] as const, ([refused, substitute]) => [
    substitute,
    refused,
  ]),
);

/** A refused character or a substitute, with all quotes before it: each is looked at once, however many there are. */
const IN_DRIVE = /(?<!\u201b)(\u201b*)(?:([\\\x7f]| $)|([\uff3c\u2421]|\u2420$))/g;
const AT_SERVICE = /(?<!\u201b)(\u201b*)([\uff3c\u2421]|\u2420$)/g;

/** Names that the service takes in no letter case (service-api.md §9.1), folded, with any number of quotes. */
const RESERVED =
  /^\u201b*(?:\.dropbox|\.dropbox\.attr|\.dropbox\.cache|desktop\.ini|thumbs\.db|\.ds_store|icon\r)$/;

/**
 * Maps every name to one that the service takes, and back. The mapping is one to one, so that every entry can be reached and no
 * two names collide. A character that the service refuses becomes its substitute, as in rclone. A substitute that stands for
 * itself gets a quote before it, and quotes that are already there are doubled. A reserved name gets one more quote. What is
 * too long then is written in parts.
 */
export const MAPPED_NAMES: WireNames = {
  toWire: (name) => partsOf(substituted(name)),
  fromWire: (names) => wholeNames(names).map(original),
  isPart,
};

function substituted(name: string): string {
  if (isReserved(name)) return QUOTE + name;
  return name.replaceAll(IN_DRIVE, (_, quotes: string, refused?: string, substitute?: string) =>
    refused === undefined
      ? `${quotes}${quotes}${QUOTE}${substitute}`
      : `${quotes}${quotes}${SUBSTITUTES.get(refused) ?? BLANK_SUBSTITUTE}`,
  );
}

function original(name: string): string {
  if (name.startsWith(QUOTE) && isReserved(name)) return name.slice(1);
  return name.replaceAll(AT_SERVICE, (_, quotes: string, substitute: string) => {
    const half = QUOTE.repeat(quotes.length >> 1);
    return half + (quotes.length % 2 === 0 ? REFUSED.get(substitute) : substitute);
  });
}

/** Folds as the service does: a regular expression that ignores case takes `ſ` for `s`. */
function isReserved(name: string): boolean {
  return RESERVED.test(foldName(name));
}
