import type { TestOptions } from 'vitest';

/** The columns of the table in docs/compatibility.md, with what each means. */
export const OPERATIONS = {
  list: 'the names in a folder',
  read: 'a file comes back byte for byte',
  range: 'a part of a file is read',
  write: 'a new file is whole',
  'large file': 'a file of several blocks of 4 MiB goes there and back',
  overwrite: 'a file gets other content',
  rename: 'a file or folder gets another name',
  move: 'a file or folder goes to another folder',
  copy: 'a file is copied by davgate, without a download',
  delete: 'a file or folder is gone',
  'odd names': 'names with `#`, `%` and blanks at the end, and others that the service does not take',
  lock: 'a file is locked and unlocked',
  properties: 'properties or modification times are set and read',
  'two at once': 'two of this client, or two transfers, work in one folder at the same time',
} as const;

export type Operation = keyof typeof OPERATIONS;

/** A row of the table. */
interface Client {
  readonly title: string;
  /** The operations that the program does not have, or that no test tries. */
  readonly without: readonly Operation[];
}

/** The programs of the table. An operation that is not in `without` is shown by a test. */
export const CLIENTS = {
  davfs2: { title: 'davfs2', without: ['range', 'copy', 'properties'] },
  rclone: { title: 'rclone', without: ['lock'] },
  'rclone nextcloud': { title: 'rclone, vendor `nextcloud`', without: ['lock', 'two at once'] },
  gvfs: { title: 'gvfs (`gio`, Files of GNOME)', without: ['range', 'lock', 'properties'] },
  kio: { title: 'KIO (Dolphin of KDE)', without: ['range', 'lock', 'properties'] },
  cadaver: { title: 'cadaver', without: ['range', 'large file', 'odd names', 'two at once'] },
  webdav: { title: 'npm `webdav`', without: [] },
  python: { title: 'webdavclient3 of Python', without: ['range', 'lock'] },
  curl: { title: 'curl', without: ['lock', 'properties'] },
  davix: { title: 'davix', without: ['copy', 'lock', 'properties'] },
  lftp: { title: 'lftp', without: ['copy', 'lock'] },
  libreoffice: {
    title: 'LibreOffice Writer',
    without: [
      ...(['list', 'range', 'large file', 'rename', 'move', 'copy', 'delete', 'odd names'] as const),
      ...(['properties', 'two at once'] as const),
    ],
  },
} as const satisfies Readonly<Record<string, Client>>;

export type ClientName = keyof typeof CLIENTS;

/**
 * The options of a test that shows that `client` can do `operations`. The table in docs/compatibility.md is made from these calls
 * in the sources (test/docs/compatibility.test.ts).
 */
export function shows(_client: ClientName, ..._operations: readonly Operation[]): TestOptions {
  return {};
}
