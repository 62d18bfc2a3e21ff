/** What can be done in a folder, or with its selected items. */
export type Command =
  | 'new-folder'
  | 'new-text'
  | 'trash'
  | 'rename'
  | 'move'
  | 'copy'
  | 'download'
  | 'versions'
  | 'share'
  | 'receive'
  | 'remove';

/** The commands of a read-only user. */
export const READING: ReadonlySet<Command> = new Set(['download', 'versions']);

/** The commands that need an answer first, or show something. */
export type Asked = Exclude<Command, 'download'>;
