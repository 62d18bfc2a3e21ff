/** What can be done in a folder, or with its selected items. */
export type Command = 'new-folder' | 'new-text' | 'rename' | 'move' | 'copy' | 'download' | 'remove';

/** The commands that need an answer first. */
export type Asked = Exclude<Command, 'download'>;
