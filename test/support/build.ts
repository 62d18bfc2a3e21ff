import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export const PROJECT_ROOT = join(import.meta.dirname, '..', '..');

/** vitest's global setup for whatever tests the built program: builds it once. */
export function setup(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: PROJECT_ROOT, stdio: 'inherit' });
}
