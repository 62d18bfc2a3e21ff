/** A drive as another program connects to it. */
export interface DriveAddress {
  /** Ends with a slash. */
  readonly url: string;
  /** `undefined` on a drive without a login. */
  readonly user: string | undefined;
}

/** The commands that mount the drive, as in `docs/mount/`. `PASSWORD` stands for the password, which the page never has. */
interface MountCommands {
  /** Makes the Web Client service of Windows log in over plain http and take large files. */
  readonly windowsOnce: string;
  readonly netUse: string;
  readonly macMount: string;
  /** The addresses for the file managers of GNOME and KDE. */
  readonly gnome: string;
  readonly dolphin: string;
  readonly gioMount: string;
  readonly davfs: string;
  readonly rclone: string;
}

const PARAMETERS = String.raw`HKLM\SYSTEM\CurrentControlSet\Services\WebClient\Parameters`;

/** Returns the commands for a drive. */
export function mountCommands({ url, user }: DriveAddress): MountCommands {
  const dav = url.replace(/^http/, 'dav');
  const isPlain = url.startsWith('http:');
  const rcloneLogin = user === undefined ? '' : ` user=${quoted(user)} pass=PASSWORD`;
  return {
    windowsOnce: lines(
      isPlain && `reg add ${PARAMETERS} /v BasicAuthLevel /t REG_DWORD /d 2 /f`,
      `reg add ${PARAMETERS} /v FileSizeLimitInBytes /t REG_DWORD /d 4294967295 /f`,
      'net stop webclient & net start webclient',
    ),
    netUse: `net use * ${url}${user === undefined ? '' : windowsUser(user)}`,
    macMount: `mkdir -p ~/drive && mount_webdav -i ${url} ~/drive`,
    gnome: dav,
    dolphin: `web${dav}`,
    gioMount: `gio mount ${dav}`,
    davfs: lines('sudo apt install davfs2', `sudo mount -t davfs -o uid=$USER ${url} /mnt`),
    rclone: lines(
      `rclone config create drive webdav url=${url} vendor=owncloud${rcloneLogin}`,
      'mkdir -p ~/drive && rclone mount drive: ~/drive --vfs-cache-mode writes',
    ),
  };
}

function lines(...commands: readonly (string | false)[]): string {
  return commands.filter((command) => command !== false).join('\n');
}

/** Returns a name as a word for a shell. */
function quoted(name: string): string {
  return /^[\w.@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

function windowsUser(name: string): string {
  return /\s/.test(name) ? ` "/user:${name}"` : ` /user:${name}`;
}
