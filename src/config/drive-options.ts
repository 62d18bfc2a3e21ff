/** Settings of what a drive does with its files. */
export const DRIVE_OPTIONS = [
  {
    name: 'delete',
    variable: 'DAVGATE_DELETE',
    value: 'auto|permanent|trash',
    default: 'auto',
    help: 'what DELETE does; auto deletes permanently where account and token allow it, else moves to the trash',
  },
  {
    name: 'names',
    variable: 'DAVGATE_NAMES',
    value: 'mapped|strict',
    default: 'mapped',
    help: 'names that the service does not take, such as one with a backslash: write them in another form there, as rclone does (mapped), or refuse them (strict)',
  },
  {
    name: 'local-files',
    variable: 'DAVGATE_LOCAL_FILES',
    value: 'keep|drop|send',
    default: 'keep',
    help: 'files that desktop systems leave in folders (.DS_Store, ._*, Thumbs.db and the like): keep them beside the drive and refuse large ones, drop the large ones and say that they are stored, or send them to the service as any other file',
  },
  {
    name: 'history-folders',
    variable: 'DAVGATE_HISTORY_FOLDERS',
    help: 'read-only folders /.versions and /.trash, from which WebDAV clients restore older versions and deleted files',
  },
  {
    name: 'read-only',
    variable: 'DAVGATE_READ_ONLY',
    help: 'clients can read everything and change nothing',
  },
] as const;
