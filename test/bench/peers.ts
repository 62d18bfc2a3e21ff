import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';

export const PROJECT_ROOT = join(import.meta.dirname, '..', '..', '..');

/** A WebDAV server of the comparison. */
export interface Peer {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Time from the start of its process to its first answer, in ms. */
  readonly startMs: number;
  /** Returns the peak memory of its processes together, in MB. */
  peakMemory(): number;
  /** Returns the processor time of its processes together since their start, in s. */
  processorSeconds(): number;
  stop(): Promise<void>;
}

const LOGIN = { authorization: `Basic ${Buffer.from('bench:bench').toString('base64')}` };

/** davgate's command, as in `npm start`. */
export const DAVGATE: readonly string[] = [
  ...['env', 'MALLOC_ARENA_MAX=2', 'MALLOC_MMAP_THRESHOLD_=131072'],
  ...[process.execPath, '--max-semi-space-size=2', join(PROJECT_ROOT, 'dist/cli/main.js')],
];

/** `prefix`: a command that runs davgate, such as `taskset`; `options`: more options of davgate. */
export function startDavgate(
  home: string,
  {
    prefix = [],
    options = [],
  }: { readonly prefix?: readonly string[]; readonly options?: readonly string[] } = {},
): Promise<Peer> {
  const folders = ['--data-dir', join(home, 'davgate'), '--cache-dir', join(home, 'davgate-cache')];
  const login = ['--user', 'bench', '--password', 'bench'];
  return start(home, 'davgate', LOGIN, (port) => [
    ...prefix,
    ...DAVGATE,
    ...['--listen', `127.0.0.1:${port}`, ...folders, ...login, ...options],
  ]);
}

export function startRclone(home: string): Promise<Peer> {
  const root = folder(home, 'rclone');
  return start(home, 'rclone serve webdav', {}, (port) => [
    ...['rclone', 'serve', 'webdav', root, '--addr', `127.0.0.1:${port}`, '--config', join(home, 'none')],
  ]);
}

export function startApache(home: string): Promise<Peer> {
  const root = folder(home, 'apache');
  folder(home, 'apache-run');
  return start(home, 'Apache mod_dav', {}, (port) => {
    const file = join(home, 'apache.conf');
    writeFileSync(file, apacheConfiguration(port, root, join(home, 'apache-run')));
    return ['apache2', '-f', file, '-DFOREGROUND'];
  });
}

function apacheConfiguration(port: number, root: string, run: string): string {
  const modules = ['mpm_event', 'authz_core', 'dav', 'dav_fs'].map(
    (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
  );
  return [
    ...modules,
    `ServerName bench`,
    `ServerRoot ${run}`,
    `Listen 127.0.0.1:${port}`,
    `PidFile ${run}/pid`,
    `ErrorLog ${run}/error.log`,
    `DavLockDB ${run}/locks`,
    `DocumentRoot ${root}`,
    'User www-data',
    'Group www-data',
    `<Directory ${root}>`,
    'Dav On',
    'Require all granted',
    '</Directory>',
    '',
  ].join('\n');
}

export function startWebdavServer(home: string): Promise<Peer> {
  const root = folder(home, 'webdav-server');
  const script = join(home, 'webdav-server.cjs');
  writeFileSync(
    script,
    `const { v2 } = require(${JSON.stringify(join(PROJECT_ROOT, 'node_modules/webdav-server'))});
     const server = new v2.WebDAVServer({ port: Number(process.argv[2]), hostname: '127.0.0.1' });
     server.setFileSystem('/', new v2.PhysicalFileSystem(${JSON.stringify(root)}), () => server.start(() => {}));`,
  );
  return start(home, 'webdav-server', {}, (port) => [process.execPath, script, String(port)]);
}

/** The status and the body of an answer in memory, by method, depth and path. */
export type Answers = Readonly<Record<string, { readonly status: number; readonly body: string }>>;

/** Key of `Answers`. */
export const answerKey = (method: string, depth: string | undefined, path: string) =>
  `${method} ${depth ?? '-'} ${path}`;

/**
 * Starts a bare node:http server, the upper bound of such a server on this machine: it checks the login, sends `answers`
 * from memory, and `file` as `/large`.
 */
export function startBareNode(home: string, file: string, answers: Answers): Promise<Peer> {
  const script = join(home, 'bare.cjs');
  writeFileSync(join(home, 'answers.json'), JSON.stringify(answers));
  writeFileSync(
    script,
    `const { createServer } = require('node:http');
     const { createReadStream, readFileSync, statSync } = require('node:fs');
     const answers = new Map(Object.entries(JSON.parse(readFileSync(${JSON.stringify(join(home, 'answers.json'))}, 'utf8'))));
     for (const answer of answers.values()) answer.body = Buffer.from(answer.body);
     createServer((request, response) => {
       request.resume();
       if (request.headers.authorization !== ${JSON.stringify(LOGIN.authorization)}) return response.writeHead(401).end();
       if (request.url === '/large') {
         response.writeHead(200, { 'content-length': statSync(${JSON.stringify(file)}).size });
         return createReadStream(${JSON.stringify(file)}).pipe(response);
       }
       const answer = answers.get(request.method + ' ' + (request.headers.depth ?? '-') + ' ' + request.url.slice(1));
       if (!answer) return response.writeHead(404).end();
       response.writeHead(answer.status, { 'content-type': 'application/xml', 'content-length': answer.body.length });
       response.end(answer.body);
     }).listen(Number(process.argv[2]), '127.0.0.1');`,
  );
  return start(home, BARE_NODE, LOGIN, (port) => [process.execPath, script, String(port)]);
}

export const BARE_NODE = 'bare node:http';

function folder(home: string, name: string): string {
  const path = join(home, name);
  mkdirSync(path, { recursive: true, mode: 0o777 });
  return path;
}

/** Starts the command on a free port. Resolves when it answers. */
export async function start(
  home: string,
  name: string,
  headers: Readonly<Record<string, string>>,
  commandFor: (port: number) => string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Peer> {
  const port = await freePort();
  const [program = '', ...args] = commandFor(port);
  // A log file, as in real use. davgate alone writes a line for each request.
  const log = openSync(join(home, `${program.replaceAll('/', '-')}-${port}.log`), 'w');
  const startedAt = performance.now();
  const child = spawn(program, args, {
    stdio: ['ignore', log, log],
    env: { ...process.env, ...environment },
  });
  const url = `http://127.0.0.1:${port}/`;
  await answering(url, child);
  return {
    name,
    url,
    headers,
    startMs: performance.now() - startedAt,
    peakMemory: () => peakMemoryOf(child.pid ?? 0),
    processorSeconds: () => processorSecondsOf(child.pid ?? 0),
    stop: async () => {
      const closed = once(child, 'close');
      child.kill('SIGTERM');
      await closed;
    },
  };
}

async function answering(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} ended with ${child.exitCode}`);
    const answered = await fetch(url, { method: 'OPTIONS' }).catch(() => undefined);
    if (answered) return;
    await sleep(5);
  }
}

/** Returns the peak memory of a process and its children, from Linux's high-water marks. */
function peakMemoryOf(pid: number): number {
  const own = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return Number(own) / 1000 + childrenOf(pid).reduce((sum, child) => sum + peakMemoryOf(child), 0);
}

/** Clock ticks of Linux a second, the unit of `/proc/PID/stat`. */
const TICKS = 100;

/** Returns the processor time of a process and its children, in user mode and in the kernel. */
export function processorSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in brackets may contain spaces; the 14th and 15th field are the times.
  const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number);
  const own = (user + system) / TICKS;
  return own + childrenOf(pid).reduce((sum, child) => sum + processorSecondsOf(child), 0);
}

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.trim().split(' ').filter(Boolean).map(Number);
}
