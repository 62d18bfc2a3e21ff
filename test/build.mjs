/** Builds davgate, and its single modules for the tests that start them as processes. */
import { execFileSync } from 'node:child_process';

const options = /** @type {const} */ ({ cwd: new URL('..', import.meta.url), stdio: 'inherit' });
execFileSync('npm', ['run', '--silent', 'build'], options);
execFileSync('npx', ['--no-install', 'tsc', '-p', 'tsconfig.json'], options);
