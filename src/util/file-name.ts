/** A file's name in two parts, which are the name again when joined. */
interface NameParts {
  readonly stem: string;
  /** With its dot: `.txt`; `''` without one. */
  readonly extension: string;
}

/**
 * Splits a name before its last dot. A dot at the start begins no extension, so `.bashrc` is all stem. An extension of
 * more than `extensionLengthMax` UTF-16 units, with its dot, belongs to the stem too.
 */
export function splitName(name: string, extensionLengthMax = Number.POSITIVE_INFINITY): NameParts {
  const dot = name.lastIndexOf('.');
  const end = dot > 0 && name.length - dot <= extensionLengthMax ? dot : name.length;
  return { stem: name.slice(0, end), extension: name.slice(end) };
}

/** Returns `name` with a number before its extension: `name (1).txt`. */
export function numberedName(name: string, number: number): string {
  const { stem, extension } = splitName(name);
  return `${stem} (${number})${extension}`;
}

/** Returns the extension in lower case, without its dot: `txt` for `A.TXT`, `''` for `.txt`. */
export function extensionOf(name: string): string {
  return splitName(name).extension.slice(1).toLowerCase();
}

/**
 * Returns the text after the last dot, in lower case; `''` without a dot. Unlike an extension, it may follow a dot at the
 * start: `txt` for `.txt`.
 */
export function endingOf(name: string): string {
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1).toLowerCase();
}
