/** The users who may use the drives. */
export type Entry =
  /** Everyone on this machine. */
  | { readonly kind: 'open' }
  /** One user. `password` is the password, or where to find it. */
  | { readonly kind: 'user'; readonly name: string; readonly password: string }
  | { readonly kind: 'table'; readonly users: number; readonly drives: number; readonly file: string }
  /** Users whose number can change while davgate runs. */
  | { readonly kind: 'listed'; readonly drives: number; readonly place: string };

/** Facts for the text after the start. */
export interface MountFacts {
  readonly url: string;
  /** Addresses of the same drive for other machines. */
  readonly otherUrls: readonly string[];
  /** The certificate's names, if `url` has none of them. */
  readonly certificateNames: readonly string[];
  readonly entry: Entry;
}

/** Returns the text that `davgate serve` prints: the address, the login, and how to mount the drive. */
export function mountHelp({ url, otherUrls, certificateNames, entry }: MountFacts): string {
  const user = entry.kind === 'open' ? undefined : entry.kind === 'user' ? entry.name : 'USER';
  const rclone = [
    'mkdir -p ~/drive && rclone mount :webdav: ~/drive --vfs-cache-mode writes',
    `--webdav-url ${url}`,
  ];
  rclone.push('--webdav-vendor owncloud');
  if (user !== undefined)
    rclone.push(`--webdav-user ${quoted(user)}`, '--webdav-pass "$(rclone obscure PASSWORD)"');
  return `
davgate serves ${drivesOf(entry)} at  ${url}
${lines('also at', otherUrls)}${certificateLine(certificateNames)}${entryLines(entry)}
Mount it:
  macOS    Finder > Go > Connect to Server: ${url}
  Windows  net use * ${url}${user === undefined ? '' : windowsUser(user)}${url.startsWith('http:') ? '   (over plain http: docs/mount/windows.md)' : ''}
  Linux    sudo mount -t davfs -o uid=$USER ${url} /mnt   (on recent kernels: docs/mount/linux.md)
  rclone   ${rclone.join(' ')}
  GNOME    Files > Other Locations: ${url.replace(/^http/, 'dav')}

Press Ctrl+C to stop.
`;
}

function quoted(name: string): string {
  return `'${name.replaceAll("'", "'\\''")}'`;
}

function windowsUser(name: string): string {
  return /\s/.test(name) ? ` "/user:${name}"` : ` /user:${name}`;
}

function drivesOf(entry: Entry): string {
  return 'drives' in entry && entry.drives > 1 ? `${entry.drives} drives` : 'your drive';
}

function lines(about: string, values: readonly string[]): string {
  return values.map((value) => `  ${about.padEnd(10)}${value}\n`).join('');
}

/** Names the certificate's hosts: clients refuse a certificate for any other host. */
function certificateLine(names: readonly string[]): string {
  if (names.length === 0) return '';
  return `  name      the certificate is for ${names.join(', ')}: clients must use ${names.length === 1 ? 'that name' : 'one of these names'}\n`;
}

function entryLines(entry: Entry): string {
  switch (entry.kind) {
    case 'open':
      return '  without a login: everyone on this machine may use it\n';
    case 'user':
      return `  user      ${entry.name}\n  password  ${entry.password}\n`;
    case 'listed':
      return `  login     as a user of ${entry.place}\n`;
    case 'table': {
      const users = entry.users === 1 ? 'the user' : `the ${entry.users} users`;
      return `  login     as ${users} of ${entry.file}\n`;
    }
  }
}
