import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestProject } from 'vitest/node';
import { clearMemory } from './environment.ts';

export const PROJECT_ROOT = join(import.meta.dirname, '..', '..');

/** Builds davgate and its single modules once, for the tests that start them as processes. vitest's global setup. */
export function setup(project: TestProject): void {
  // vitest calls this for each project too, before the root, which always runs.
  if (!project.isRootProject()) return;
  const options = { cwd: PROJECT_ROOT, stdio: 'inherit' } as const;
  execFileSync('npm', ['run', '--silent', 'build'], options);
  execFileSync('npx', ['--no-install', 'tsc', '-p', 'tsconfig.json'], options);
}

/** vitest's global teardown. */
export const teardown = clearMemory;

/**
 * Returns the URL from which a child process imports the compiled `source`, a file in `src`. Node 20 cannot load
 * TypeScript.
 */
export function builtUrl(source: string): string {
  return pathToFileURL(join(PROJECT_ROOT, 'dist/test/src', source.replace(/\.ts$/, '.js'))).href;
}
