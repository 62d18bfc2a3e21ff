import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PROJECT_ROOT } from './build.ts';

export interface Compiled {
  /** To be imported by a child process. */
  readonly url: string;
  remove(): void;
}

/** `source`, a file in `src`, and all it imports as plain JavaScript, for child processes that can be killed. */
export function compile(source: string): Compiled {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-compiled-'));
  // Also for a child that runs as another user.
  chmodSync(directory, 0o755);
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(directory, 'node_modules'));
  const settings = {
    extends: join(PROJECT_ROOT, 'tsconfig.json'),
    compilerOptions: {
      rootDir: join(PROJECT_ROOT, 'src'),
      outDir: directory,
      typeRoots: [join(PROJECT_ROOT, 'node_modules/@types')],
    },
    include: [],
    files: [join(PROJECT_ROOT, 'src', source)],
  };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(settings));
  execFileSync(join(PROJECT_ROOT, 'node_modules/.bin/tsc'), ['-p', directory], { stdio: 'inherit' });
  return {
    url: pathToFileURL(join(directory, source.replace(/\.ts$/, '.js'))).href,
    remove: () => rmSync(directory, { recursive: true }),
  };
}
