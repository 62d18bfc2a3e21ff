import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from './build.ts';
import { succeed } from './command.ts';

/** The path at which better-sqlite3 looks for a binary compiled on this machine. */
const COMPILED = 'node_modules/better-sqlite3/build/Release/better_sqlite3.node';

/** Whether davgate's postinstall script compiles a binary: Node 20 cannot load the one in better-sqlite3's package. */
export const compiles = Number.parseInt(process.versions.node, 10) < 22;

/** Options of `npm install`. Compiling takes minutes, so this checkout's binary, made by the same script, is copied instead. */
export const INSTALL_OPTIONS = [
  ...['--no-audit', '--no-fund', '--prefer-offline'],
  ...(compiles ? ['--ignore-scripts'] : []),
];

/** Packs the built davgate into `directory`. Returns the archive's path and the paths of its files. */
export async function packDavgate(directory: string) {
  // The global setup has built `dist`; `prepack` would build it again under the other tests.
  const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory];
  const { stdout } = await succeed('npm', words, { directory: PROJECT_ROOT });
  const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[]; // npm's documented form
  return {
    tarball: join(directory, packed?.filename ?? ''),
    paths: packed?.files.map(({ path }) => path) ?? [],
  };
}

/** Returns whether better-sqlite3 was compiled in the folder that contains its `node_modules`. */
export function isCompiledIn(folder: string): boolean {
  return existsSync(join(folder, COMPILED));
}

/** Copies this checkout's compiled better-sqlite3 into the folder that contains its `node_modules`. */
export function copyCompiled(folder: string): void {
  mkdirSync(join(folder, COMPILED, '..'), { recursive: true });
  cpSync(join(PROJECT_ROOT, COMPILED), join(folder, COMPILED));
}
