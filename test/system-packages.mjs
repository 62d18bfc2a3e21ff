import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The foreign programs that the tests drive: the Debian package, and the program that shows it is there. */
const PACKAGES = [
  { name: 'litmus', program: 'litmus' },
  { name: 'davfs2', program: 'mount.davfs' },
  { name: 'rclone', program: 'rclone' },
  { name: 'cadaver', program: 'cadaver' },
  { name: 'fuse3', program: 'fusermount3' },
  { name: 'curl', program: 'curl' },
];

/** @param {string} program */
function isInstalled(program) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => folder !== '' && existsSync(join(folder, program)));
}

const missing = () => PACKAGES.filter(({ program }) => !isInstalled(program)).map(({ name }) => name);

/** @param {string[]} words */
function aptGet(...words) {
  return spawnSync('apt-get', words, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

/**
 * Installs the foreign programs that are missing, where that is allowed.
 * @returns {string | undefined} what is still missing and what to do, or nothing
 */
export function installSystemPackages() {
  const wanted = missing();
  if (wanted.length === 0) return undefined;
  if (process.getuid?.() === 0 && isInstalled('apt-get')) {
    console.log(`Installing ${wanted.join(' ')}`);
    aptGet('update', '-q');
    aptGet('install', '-q', '-y', '--no-install-recommends', ...wanted);
  }
  const left = missing();
  if (left.length > 0)
    return `missing programs: install them with "apt-get install ${left.join(' ')}" as root, then run the tests again`;
  if (!existsSync('/dev/fuse'))
    return 'missing device: /dev/fuse; the kernel needs its FUSE module for the mounts';
  return undefined;
}
