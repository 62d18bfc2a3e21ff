/** A name that the service takes in no form: it is too long, and a letter with its marks cannot be cut. */
export const REFUSED_NAME = `e${'\u0316'.repeat(300)}`;

/** Names that a Linux program can give a file, and that the service does not take or that look like their forms there. */
export const ODD_NAMES: readonly string[] = [
  'back\\slash',
  'del\x7f',
  'blank ',
  ' blanks  ',
  'full＼width',
  '␡',
  'ends with ␠',
  '.dropbox',
];
