import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { succeed } from '../support/command.ts';
import { matchOutput, spawnProgram, temporaryDirectory } from '../support/program.ts';
import { examplesOf, type ProxyName, startReverseProxy } from '../support/reverse-proxy.ts';

/** The socket of the page. */
const SOCKET = '/run/davgate/davgate.sock';

/** The line of each proxy's first example that names davgate's address, which the page's table replaces. */
const ADDRESS_LINES: Readonly<Record<ProxyName, RegExp>> = {
  nginx: /proxy_pass [^;]+;/,
  apache: /ProxyPass +\/ .*/,
  caddy: /reverse_proxy \S+/,
  haproxy: /server davgate \S+/,
};

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let socketPath: string;
let davgate: ChildProcess;

beforeAll(async () => {
  directory = await temporaryDirectory();
  // The proxies' own processes have another user.
  await chmod(directory.path, 0o755);
  socketPath = join(directory.path, 'davgate.sock');
  const { child, output } = spawnProgram([
    ...['--listen', `unix:${socketPath}`, '--socket-mode', '666', '--no-auth'],
    ...['--data-dir', join(directory.path, 'data'), '--cache-dir', join(directory.path, 'cache')],
  ]);
  davgate = child;
  await matchOutput(child, output, /to stop\./);
});
afterAll(async () => {
  const closed = once(davgate, 'close');
  davgate.kill();
  await closed;
  await directory.remove();
});

/** Returns the line for a proxy in the table of docs/reverse-proxy.md. */
async function socketLineOf(proxy: ProxyName): Promise<string> {
  const page = await readFile(join(PROJECT_ROOT, 'docs/reverse-proxy.md'), 'utf8');
  const [, line = ''] = new RegExp(`^\\| ${proxy} \\| \`(.*${SOCKET}.*)\` \\|$`, 'im').exec(page) ?? [];
  return line.replaceAll('\\|', '|').replace(SOCKET, socketPath);
}

test.each(['nginx', 'apache', 'caddy', 'haproxy'] as const)(
  '%s with the Unix socket of the page passes writes, reads and a Destination with https',
  async (name) => {
    const [example = ''] = await examplesOf(name);
    const line = await socketLineOf(name);
    expect(line).toContain(socketPath);
    expect(example).toMatch(ADDRESS_LINES[name]);
    const proxy = await startReverseProxy(name, example.replace(ADDRESS_LINES[name], line), 'none');
    const status = async (...args: string[]) =>
      (await succeed('curl', ['-sk', '-o', '/dev/null', '-w', '%{http_code}', ...args])).stdout;
    try {
      const file = `${proxy.url}/${name}.txt`;
      expect(await status('-T', join(PROJECT_ROOT, 'README.md'), file)).toBe('201');
      // davgate accepts the https of the header, because it trusts the clients of its socket.
      const target = `${proxy.url}/${name}-moved.txt`;
      expect(await status('-X', 'MOVE', '-H', `Destination: ${target}`, file)).toBe('201');
      const { stdout } = await succeed('curl', ['-sk', target]);
      expect(stdout).toBe(await readFile(join(PROJECT_ROOT, 'README.md'), 'utf8'));
    } finally {
      await proxy.stop();
    }
  },
);
