import type { Gateway } from '../app.ts';

/** What a person needs after the start: the address, the login, and how to mount the drive here. */
export function mountHelp({ url, login }: Pick<Gateway, 'url' | 'login'>): string {
  const quoted = login && `'${login.name.replaceAll("'", "'\\''")}'`;
  const rclone = ['rclone mount :webdav: ~/drive', `--webdav-url ${url}`, '--webdav-vendor owncloud'];
  if (quoted) rclone.push(`--webdav-user ${quoted}`, '--webdav-pass "$(rclone obscure PASSWORD)"');
  return `
davgate serves your drive at  ${url}
${loginLines(login)}
Mount it:
  macOS    Finder > Go > Connect to Server: ${url}
  Windows  net use * ${url}${login ? windowsUser(login.name) : ''}${url.startsWith('http:') ? '   (over plain http: README, "Windows")' : ''}
  Linux    sudo mount -t davfs -o uid=$USER ${url} /mnt   (on recent kernels: README, "davfs2")
  rclone   ${rclone.join(' ')}
  GNOME    Files > Other Locations: ${url.replace(/^http/, 'dav')}

Press Ctrl+C to stop.
`;
}

function windowsUser(name: string): string {
  return /\s/.test(name) ? ` "/user:${name}"` : ` /user:${name}`;
}

function loginLines(login: Gateway['login']): string {
  if (!login) return '  without a login\n';
  const password = login.password ?? '(the one you set)';
  return `  user      ${login.name}\n  password  ${password}\n`;
}
