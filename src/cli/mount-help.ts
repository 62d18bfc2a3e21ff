import type { Gateway } from '../app.ts';

/** What a person needs after the start: the address, the login, and how to mount the drive here. */
export function mountHelp({ url, login }: Pick<Gateway, 'url' | 'login'>): string {
  const user = login?.name ?? '';
  const rclone = `:webdav,url='${url}',vendor=owncloud${login ? `,user='${user}'` : ''}:`;
  return `
davgate serves your drive at  ${url}
${loginLines(login)}
Mount it:
  macOS    Finder > Go > Connect to Server: ${url}
  Windows  net use * ${url}${login ? ` /user:${user}` : ''}
  Linux    sudo mount -t davfs -o uid=$USER ${url} /mnt
           rclone mount ${rclone} ~/drive${login ? '   (and --webdav-pass "$(rclone obscure PASSWORD)")' : ''}
  GNOME    Files > Other Locations: ${url.replace(/^http/, 'dav')}

Press Ctrl+C to stop.
`;
}

function loginLines(login: Gateway['login']): string {
  if (!login) return '  without a login\n';
  const password = login.password ?? '(the one you set)';
  return `  user      ${login.name}\n  password  ${password}\n`;
}
