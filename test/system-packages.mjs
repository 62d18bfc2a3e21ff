import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * The foreign programs that the tests drive: the Debian package, the program that shows it is there, and the
 * vitest project whose tests want it. Only `npm run test:long` needs those with `isLong`, which take 600 MB of the disk.
 */
const PACKAGES = [
  { name: 'litmus', program: 'litmus', project: 'clients' },
  { name: 'davfs2', program: 'mount.davfs', project: 'clients' },
  { name: 'rclone', program: 'rclone', project: 'clients' },
  { name: 'cadaver', program: 'cadaver', project: 'clients' },
  { name: 'davix', program: 'davix-get', project: 'clients' },
  { name: 'lftp', program: 'lftp', project: 'clients' },
  { name: 'python3-webdavclient', program: 'wdc', project: 'clients' },
  { name: 'python3-caldav', program: 'python3/dist-packages/caldav/__init__.py', project: 'clients' },
  { name: 'restic', program: 'restic', project: 'clients' },
  { name: 'duplicity', program: 'duplicity', project: 'clients' },
  { name: 'git', program: 'git', project: 'clients' },
  { name: 'sqlite3', program: 'sqlite3', project: 'clients' },
  { name: 'fuse3', program: 'fusermount3', project: 'clients' },
  { name: 'prometheus', program: 'promtool', project: 'clients' },
  { name: 'socat', program: 'socat', project: 'clients' },
  { name: 'systemd', program: 'systemd-notify', project: 'clients' },
  { name: 'gvfs-backends', program: 'gvfsd-dav', project: 'clients' },
  { name: 'libglib2.0-bin', program: 'gio', project: 'clients' },
  { name: 'kde-cli-tools', program: 'kioclient5', project: 'clients' },
  { name: 'dbus', program: 'dbus-run-session', project: 'clients' },
  { name: 'curl', program: 'curl', project: 'clients' },
  { name: 'openssl', program: 'openssl', project: 'clients' },
  { name: 'chromium', program: 'chromium', project: 'clients' },
  { name: 'chromium-headless-shell', program: 'chromium-headless-shell', project: 'clients' },
  { name: 'bsdutils', program: 'script', project: 'clients' },
  { name: 'zsh', program: 'zsh', project: 'clients' },
  { name: 'fish', program: 'fish', project: 'clients' },
  { name: 'man-db', program: 'man', project: 'clients' },
  { name: 'groff-base', program: 'groff', project: 'clients' },
  { name: 'nginx-light', program: 'nginx', project: 'clients' },
  { name: 'apache2', program: 'apache2', project: 'clients' },
  { name: 'apache2-utils', program: 'htpasswd', project: 'clients' },
  { name: 'caddy', program: 'caddy', project: 'clients' },
  { name: 'haproxy', program: 'haproxy', project: 'clients' },
  { name: 'unzip', program: 'unzip', project: 'integration' },
  { name: 'redis-server', program: 'redis-server', project: 'integration' },
  { name: 'redis-sentinel', program: 'redis-sentinel', project: 'integration' },
  { name: 'postgresql', program: 'postgres', project: 'integration' },
  { name: 'libreoffice-writer-nogui', program: 'soffice', project: 'clients', isLong: true },
  { name: 'python3-uno', program: 'libreoffice/program/libpyuno.so', project: 'clients', isLong: true },
  { name: 'ceph-mon', program: 'ceph-mon', project: 'clients', isLong: true },
  { name: 'ceph-osd', program: 'ceph-osd', project: 'clients', isLong: true },
  { name: 'radosgw', program: 'radosgw', project: 'clients', isLong: true },
  { name: 'memcached', program: 'memcached', project: 'clients', isLong: true },
  { name: 'swift-account', program: 'swift-account-server', project: 'clients', isLong: true },
  { name: 'swift-container', program: 'swift-container-server', project: 'clients', isLong: true },
  { name: 'swift-object', program: 'swift-object-server', project: 'clients', isLong: true },
  { name: 'swift-proxy', program: 'swift-proxy-server', project: 'clients', isLong: true },
];

/** Debian's folder with one for each version of PostgreSQL, none of which is on the PATH. */
const POSTGRESQL = '/usr/lib/postgresql';

/** Returns the folders with the programs of PostgreSQL. */
function postgresqlFolders() {
  const versions = existsSync(POSTGRESQL) ? readdirSync(POSTGRESQL) : [];
  return versions.map((version) => join(POSTGRESQL, version, 'bin'));
}

/** @param {string} program */
function isInstalled(program) {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...['/usr/sbin', '/sbin', '/usr/libexec', '/usr/lib'],
    ...postgresqlFolders(),
  ];
  return folders.some((folder) => folder !== '' && existsSync(join(folder, program)));
}

/**
 * @param {(project: string) => boolean} isRun
 * @param {boolean} isLongRun
 */
function missing(isRun, isLongRun) {
  const wanted = PACKAGES.filter(
    ({ program, project, isLong = false }) =>
      isRun(project) && (isLongRun || !isLong) && !isInstalled(program),
  );
  return wanted.map(({ name }) => name);
}

/** @param {string[]} words */
function aptGet(...words) {
  return spawnSync('apt-get', words, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

/**
 * Installs the foreign programs that are missing, where that is allowed.
 * @param {string[]} projects the vitest projects that will run; none stands for all
 * @param {boolean} isLongRun whether this is `npm run test:long`
 * @returns {string | undefined} what is still missing and what to do, or nothing
 */
export function installSystemPackages(projects, isLongRun) {
  /** @param {string} project */
  const isRun = (project) => projects.length === 0 || projects.includes(project);
  const wanted = missing(isRun, isLongRun);
  if (wanted.length === 0) return undefined;
  if (process.getuid?.() === 0 && isInstalled('apt-get')) {
    console.log(`Installing ${wanted.join(' ')}`);
    aptGet('update', '-q');
    aptGet('install', '-q', '-y', '--no-install-recommends', ...wanted);
  }
  const left = missing(isRun, isLongRun);
  if (left.length > 0)
    return `missing programs: install them with "apt-get install ${left.join(' ')}" as root, then run the tests again`;
  if (isRun('clients') && !existsSync('/dev/fuse'))
    return 'missing device: /dev/fuse; the kernel needs its FUSE module for the mounts';
  return undefined;
}
