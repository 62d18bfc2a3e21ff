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
