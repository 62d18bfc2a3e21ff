import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const PROJECT_ROOT = join(import.meta.dirname, '..', '..');

/** vitest's global setup: builds the program once, for the tests that start it or parts of it as processes. */
export function setup(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: PROJECT_ROOT, stdio: 'inherit' });
}

/** Returns the address from which a child process imports `source`, a file in `src`. Node 20 cannot load TypeScript. */
export function builtUrl(source: string): string {
  return pathToFileURL(join(PROJECT_ROOT, 'dist', source.replace(/\.ts$/, '.js'))).href;
}
