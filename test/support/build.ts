import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestProject } from 'vitest/node';
import { clearMemory } from './environment.ts';

export const PROJECT_ROOT = join(import.meta.dirname, '..', '..');

/** vitest's global setup: builds davgate, unless `npm test` has done it. */
export function setup(project: TestProject): void {
  // vitest calls this for each project too, before the root, which always runs.
  if (!project.isRootProject() || process.env['TEST_IS_BUILT']) return;
  execFileSync(process.execPath, [join(PROJECT_ROOT, 'test/build.mjs')], { stdio: 'inherit' });
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
