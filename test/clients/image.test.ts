import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command } from '../support/command.ts';
import { freePort } from '../support/free-port.ts';
import { startProgram, temporaryDirectory } from '../support/program.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory.remove());

/** Runs the Dockerfile's health check as in a container that listens on `port`; returns its exit code. */
async function healthOf(port: number): Promise<number | null> {
  const dockerfile = readFileSync(join(PROJECT_ROOT, 'Dockerfile'), 'utf8');
  const words = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]';
  const [program = '', ...args]: string[] = JSON.parse(words);
  const { code } = await command(program, args, { environment: { DAVGATE_LISTEN: `0.0.0.0:${port}` } });
  return code;
}

test('the image’s data and cache directories are in its only volume', () => {
  const dockerfile = readFileSync(join(PROJECT_ROOT, 'Dockerfile'), 'utf8');
  expect(dockerfile.match(/^VOLUME .*$/gm)).toEqual(['VOLUME ["/data"]']);
  const directories = [...dockerfile.matchAll(/DAVGATE_(?:DATA|CACHE)_DIR=(\S+)/g)].map(([, path]) => path);
  expect(directories).toEqual(['/data', '/data/cache']);
});

const certificate = (name: string) => join(PROJECT_ROOT, 'test/support/certificates', name);

test.each([
  ['http', []],
  ['https', ['--tls-cert', certificate('one.pem'), '--tls-key', certificate('one.key')]],
])('the image’s health check succeeds while davgate serves %s, and fails before', async (scheme, args) => {
  const port = await freePort();
  expect(await healthOf(port)).toBe(1);
  const program = await startProgram({ dataDirectory: join(directory.path, scheme), port, args });
  expect(program.url).toBe(`${scheme}://127.0.0.1:${port}/`);
  expect(await healthOf(port)).toBe(0);
  expect(await program.stop()).toBe(0);
});
