/** Keys of a user: the source of the checks and of the schema. */
export const USER_KEYS = [
  { name: 'name', isRequired: true, type: 'string', help: 'the name to log in with; without a colon' },
  { name: 'password', isRequired: false, type: 'string', help: 'the password in clear text' },
  {
    name: 'password-hash',
    isRequired: false,
    type: 'string',
    help: 'the hash that davgate hash-password prints, or one of htpasswd (bcrypt, apr1 or {SHA})',
  },
  {
    name: 'drive',
    isRequired: false,
    type: 'string',
    help: 'the name of the drive that the user sees at the address',
  },
  {
    name: 'root',
    isRequired: false,
    type: 'string',
    help: 'the folder of that drive that the user sees, like /Ann; made when needed',
  },
  {
    name: 'drives',
    isRequired: false,
    type: 'array',
    help: 'in place of drive: a list of drives, each a folder at the address; a name, or drive, root, read-only, quota and folders',
  },
  {
    name: 'read-only',
    isRequired: false,
    type: 'boolean',
    help: 'true: the user can read everything and change nothing',
  },
  {
    name: 'quota',
    isRequired: false,
    type: ['string', 'integer'],
    help: 'maximum size of what the user sees of that drive: 500MB, 20GiB, 2TB, or a number of bytes',
  },
  {
    name: 'folders',
    isRequired: false,
    type: 'object',
    help: 'rights in single folders of that drive, like { /Public: read-only, /Public/Inbox: read-write, /Private: hidden }',
  },
  {
    name: 'bandwidth',
    isRequired: false,
    type: 'object',
    help: 'maximum bytes of files in a second, like { download: 10MB, upload: 5MB }',
  },
] as const;

/** Keys of one in the list of a user's drives. */
export const GRANT_KEYS = ['drive', 'root', 'read-only', 'quota', 'folders'] as const;
