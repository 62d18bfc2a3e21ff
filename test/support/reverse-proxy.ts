import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import MarkdownIt from 'markdown-it';
import { PROJECT_ROOT } from './build.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

const CERTIFICATE = join(PROJECT_ROOT, 'test/support/certificates/one.pem');
const KEY = join(PROJECT_ROOT, 'test/support/certificates/one.key');

/** The address of davgate in the documents. */
const UPSTREAM = '127.0.0.1:8765';

/** The host and port at which a proxy listens, and the directory of its files. */
interface Place {
  readonly address: string;
  readonly directory: string;
}

interface Kind {
  /** Returns the whole configuration for an example of the documents. */
  readonly configuration: (example: string, place: Place) => string;
  /** Returns the command that runs in the foreground with the configuration in `file`. */
  readonly command: (file: string, place: Place) => readonly [program: string, ...args: string[]];
}

const APACHE_MODULES = [
  ...['mpm_event', 'authz_core', 'ssl', 'proxy', 'proxy_http', 'headers', 'reqtimeout'],
];

/** The proxies by the name of their language in the documents. */
const KINDS = {
  nginx: {
    configuration: (example, { address, directory }) => `
      pid ${directory}/nginx.pid;
      error_log stderr;
      daemon off;
      events {}
      http {
        access_log off;
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((use) => `${use}_temp_path ${directory}/${use};`).join('\n')}
        ${withCertificate(example).replace('listen 443', `listen ${address}`)}
      }`,
    command: (file, { directory }) => ['/usr/sbin/nginx', '-p', directory, '-c', file, '-e', 'stderr'],
  },
  apache: {
    configuration: (example, { address, directory }) => `
      ServerRoot ${directory}
      DefaultRuntimeDir ${directory}
      PidFile ${directory}/apache.pid
      ErrorLog ${directory}/error.log
      ServerName localhost
      Listen ${address}
      ${APACHE_MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
      ${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
      ${withCertificate(example).replace('*:443', address)}`,
    command: (file) => ['/usr/sbin/apache2', '-DFOREGROUND', '-f', file],
  },
  caddy: {
    configuration: (example, { address }) => `{
        admin off
        auto_https disable_redirects
      }
      ${example.replace(/^\S+ \{/, `https://:${portOf(address)} {\n\tbind 127.0.0.1\n\ttls ${CERTIFICATE} ${KEY}`)}`,
    command: (file) => ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'],
  },
  haproxy: {
    configuration: (example, { address, directory }) =>
      example
        .replace('bind :443', `bind ${address}`)
        .replace('/etc/ssl/drive-and-key.pem', join(directory, 'both.pem')),
    command: (file) => ['/usr/sbin/haproxy', '-db', '-f', file],
  },
} as const satisfies Readonly<Record<string, Kind>>;

export type ProxyName = keyof typeof KINDS;

/** The files in docs/deploy that put a proxy in front of several gateways. */
const BALANCERS = { haproxy: 'haproxy.cfg', nginx: 'nginx.conf' } as const;

/** Returns the examples for a proxy in docs/reverse-proxy.md, in their order. */
export async function examplesOf(name: ProxyName): Promise<readonly string[]> {
  const page = await readFile(join(PROJECT_ROOT, 'docs/reverse-proxy.md'), 'utf8');
  const tokens = new MarkdownIt().parse(page, {});
  return tokens.filter(({ type, info }) => type === 'fence' && info === name).map(({ content }) => content);
}

export interface ReverseProxy {
  /** Address without a slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Runs a proxy with an example of the documents on this machine, in front of davgate at `upstream`: `HOST:PORT`. */
export function startReverseProxy(name: ProxyName, example: string, upstream: string): Promise<ReverseProxy> {
  return run(name, example.replaceAll(UPSTREAM, upstream));
}

/** Runs a proxy with its file in docs/deploy on this machine, in front of gateways at these ports. */
export async function startBalancer(
  name: keyof typeof BALANCERS,
  ports: readonly number[],
): Promise<ReverseProxy> {
  const text = await readFile(join(PROJECT_ROOT, 'docs/deploy', BALANCERS[name]), 'utf8');
  const replaced = ports.reduce(
    (done, port, index) => done.replace(`gateway-${index + 1}.example.com:8765`, `127.0.0.1:${port}`),
    text,
  );
  return run(name, replaced);
}

/** Runs a proxy with the configuration of the documents. */
async function run(name: ProxyName, example: string): Promise<ReverseProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-proxy-'));
  // The proxies' own processes have another user.
  await chmod(directory, 0o755);
  await writeFile(join(directory, 'both.pem'), `${await readFile(CERTIFICATE)}${await readFile(KEY)}`);
  await mkdir(join(directory, 'home'));
  const address = `127.0.0.1:${await freePort()}`;
  const kind: Kind = KINDS[name];
  const file = join(directory, 'configuration');
  await writeFile(file, kind.configuration(example, { address, directory }));
  const [program, ...args] = kind.command(file, { address, directory });
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOME: join(directory, 'home'), XDG_DATA_HOME: join(directory, 'home') },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  try {
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${output}`);
      await connected(address);
    });
  } catch (error) {
    await end(child);
    const log = await readFile(join(directory, 'error.log'), 'utf8').catch(() => '');
    throw new Error(`${name} does not listen:\n${output}${log}`, { cause: error });
  }
  return {
    url: `https://${address}`,
    async stop() {
      await end(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function withCertificate(example: string): string {
  return example.replace('/etc/ssl/drive.pem', CERTIFICATE).replace('/etc/ssl/drive.key', KEY);
}

function portOf(address: string): number {
  return Number(address.split(':')[1]);
}

function connected(address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(portOf(address), '127.0.0.1', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
