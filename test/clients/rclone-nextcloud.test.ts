import { createHash } from 'node:crypto';
import { mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone, type Rclone } from '../support/rclone.ts';
import { examplesOf, startReverseProxy } from '../support/reverse-proxy.ts';
import { digestTree } from '../support/trees.ts';

// rclone with the vendor nextcloud. Debian's rclone 1.60 sends files whole; 1.63 and later send them in pieces, which the second
// part of this file does in the same steps (rclone's backend/webdav/chunking.go).

const MIB = 1024 * 1024;
const PIECE_BYTES = 5 * MIB;
const BYTES = pseudoRandomBytes(3 * PIECE_BYTES + 17, 5);

let program: Program;
let rclone: Rclone;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  program = await startProgram({ dataDirectory: data.path });
  const url = `${program.url}remote.php/dav/files/tester`;
  rclone = await configureRclone({ ...program, url, vendor: 'nextcloud' });
});
afterAll(async () => {
  await program?.stop();
  await rclone?.remove();
  await Promise.all([data.remove(), local.remove()]);
});

describe('rclone with the vendor nextcloud at files/USER', () => {
  test(
    'rclone copies a tree there and back, checks, moves and deletes it',
    shows('rclone nextcloud', 'list', 'read', 'write', 'large file', 'rename', 'move', 'delete', 'odd names'),
    async () => {
      const source = join(local.path, 'source');
      await mkdir(join(source, 'sub folder'), { recursive: true });
      await writeFile(join(source, 'large.bin'), BYTES);
      for (const name of [...ODD_NAMES, '#1 & ü.txt'])
        await writeFile(join(source, 'sub folder', name), name);
      await rclone.run('copy', source, 'drive:copied');
      await rclone.run('check', '--download', source, 'drive:copied');
      const { output } = await rclone.run('copy', source, 'drive:copied', '-v', '--stats-one-line');
      expect(output).not.toMatch(/Copied/);
      await rclone.run('moveto', 'drive:copied/large.bin', 'drive:copied/sub folder/moved.bin');
      await rclone.run('moveto', 'drive:copied/sub folder/moved.bin', 'drive:copied/large.bin');
      await rclone.run('copy', 'drive:copied', join(local.path, 'back'));
      expect(await digestTree(join(local.path, 'back'))).toEqual(await digestTree(source));
      await rclone.run('deletefile', 'drive:copied/large.bin');
      await rclone.run('purge', 'drive:copied');
      expect((await rclone.run('lsf', '-R', 'drive:')).stdout).toBe('');
    },
  );

  test(
    'rclone replaces a file, reads a part of it, keeps its time, and copies it within the drive without a download',
    shows('rclone nextcloud', 'range', 'overwrite', 'copy', 'properties'),
    async () => {
      const file = join(local.path, 'file');
      for (const text of ['a longer first text', '0123456789']) {
        await writeFile(file, text);
        await utimes(file, 981_173_106, 981_173_106);
        await rclone.run('copyto', file, 'drive:file');
      }
      expect((await rclone.run('cat', '--offset', '3', '--count', '4', 'drive:file')).stdout).toBe('3456');
      expect((await rclone.run('lsjson', 'drive:file')).stdout).toContain('"ModTime":"2001-02-03T04:05:06');
      const { output } = await rclone.run('copyto', '-v', 'drive:file', 'drive:twin');
      expect(output).toContain('server-side copy');
      expect((await rclone.run('cat', 'drive:twin')).stdout).toBe('0123456789');
      await rclone.run('delete', 'drive:', '--include', '/{file,twin}');
    },
  );
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

async function send(method: string, target: string, { headers = {}, body }: Sent = {}): Promise<Answer> {
  const answer = await fetch(new URL(target, program.url), {
    ...{ method, headers: { authorization: program.authorization, ...headers } },
    ...(body && { body: new Uint8Array(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** Begins to send a piece, and resolves when a part of it is sent. The connection breaks when davgate is killed. */
async function sendPart(target: string, body: Uint8Array): Promise<void> {
  const headers = { authorization: program.authorization, 'content-length': body.length };
  const outgoing = request(new URL(target, program.url), { method: 'PUT', headers });
  outgoing.on('error', () => {});
  await new Promise((resolve) => outgoing.write(body.subarray(0, MIB), resolve));
}

async function restart(): Promise<void> {
  const port = Number(new URL(program.url).port);
  await program.kill();
  program = await startProgram({ dataDirectory: data.path, port });
}

const FILES = '/remote.php/dav/files/tester';

describe('the steps of an rclone that sends files in pieces', () => {
  /** Returns the address of the pieces of a file, and the pieces, as rclone names them. */
  function chunked(name: string) {
    const hash = createHash('md5').update(name).digest('hex');
    const folder = `/remote.php/dav/uploads/tester/rclone-chunked-upload-${hash}`;
    const digits = (number: number) => String(number).padStart(15, '0');
    const pieces = [];
    for (let start = 0; start < BYTES.length; start += PIECE_BYTES) {
      const bytes = BYTES.subarray(start, start + PIECE_BYTES);
      pieces.push({ target: `${folder}/${digits(start)}-${digits(start + bytes.length - 1)}`, bytes });
    }
    const headers = {
      Destination: new URL(`${FILES}/${name}`, program.url).href,
      'X-OC-Mtime': '1500000000',
      'OC-Checksum': `SHA1:${createHash('sha1').update(BYTES).digest('hex')}`,
    };
    const move = () => send('MOVE', `${folder}/.file`, { headers });
    return { folder, pieces, move };
  }

  async function expectFile(name: string): Promise<void> {
    const { stdout } = await rclone.run('lsjson', '--hash', '--stat', `drive:${name}`);
    const { Size, ModTime, Hashes } = JSON.parse(stdout) as {
      readonly Size: number;
      readonly ModTime: string;
      readonly Hashes: Readonly<Record<string, string>>;
    };
    expect([Size, Date.parse(ModTime)]).toEqual([BYTES.length, 1_500_000_000_000]);
    expect(Object.values(Hashes)).toContain(createHash('sha1').update(BYTES).digest('hex'));
    const target = join(local.path, name);
    await rclone.run('copyto', `drive:${name}`, target);
    await rclone.run('check', '--download', '--include', name, local.path, 'drive:');
  }

  test('a file in pieces appears at MOVE, with its time and its checksum, and reads back equal', async () => {
    const { folder, pieces, move } = chunked('in pieces.bin');
    expect((await send('DELETE', `${folder}/`)).status).toBe(404);
    expect((await send('MKCOL', `${folder}/`)).status).toBe(201);
    for (const { target, bytes } of pieces)
      expect((await send('PUT', target, { body: bytes })).status).toBe(201);
    expect((await rclone.run('lsf', 'drive:')).stdout).toBe('');
    expect((await move()).status).toBe(201);
    await expectFile('in pieces.bin');
    expect((await send('PROPFIND', folder)).status).toBe(404);
  });

  test('after a kill in the middle of a piece, acknowledged pieces are there, no half file is, and the upload goes on', async () => {
    const { folder, pieces, move } = chunked('killed.bin');
    await send('MKCOL', `${folder}/`);
    const [first, second, ...rest] = pieces;
    if (!first || !second) throw new Error('the file has several pieces');
    expect((await send('PUT', first.target, { body: first.bytes })).status).toBe(201);
    await sendPart(second.target, second.bytes);
    await restart();
    expect((await rclone.run('lsf', '--include', 'killed.bin', 'drive:')).stdout).toBe('');
    const listed = await send('PROPFIND', folder, { headers: { Depth: '1' } });
    expect(listed.text).toContain(first.target);
    expect(listed.text).not.toContain(second.target);
    for (const { target, bytes } of [second, ...rest])
      expect((await send('PUT', target, { body: bytes })).status).toBe(201);
    expect((await move()).status).toBe(201);
    await expectFile('killed.bin');
  });

  test('after a kill while MOVE stores the file, the same MOVE again makes it whole', async () => {
    const { folder, pieces, move } = chunked('moved.bin');
    await send('MKCOL', `${folder}/`);
    for (const { target, bytes } of pieces) await send('PUT', target, { body: bytes });
    const answer = move().catch(() => undefined);
    // A piece cannot be deleted (403), least of all while it becomes a part of the file (423).
    const probe = async () => (await send('DELETE', pieces[0]?.target ?? '')).status;
    while ((await probe()) === 403);
    await restart();
    // Otherwise the file was stored before the kill.
    if ((await answer) === undefined) expect([201, 204, 404]).toContain((await move()).status);
    await expectFile('moved.bin');
  });
});

test('a file that is too large for a request through nginx passes it in pieces', async () => {
  const [example = ''] = await examplesOf('nginx');
  const limited = example.replace('client_max_body_size 0', `client_max_body_size ${PIECE_BYTES}`);
  const proxy = await startReverseProxy('nginx', limited, new URL(program.url).host);
  const login = [
    '-k',
    '-sS',
    '-u',
    `${program.user}:${program.password}`,
    '-w',
    '%{http_code}',
    '-o',
    '/dev/null',
  ];
  /** Returns the status of an answer that passed the proxy. */
  const curl = async (...args: readonly string[]) => {
    const { stdout } = await succeed('curl', [...login, ...args], { directory: local.path });
    return Number(stdout);
  };
  try {
    await writeFile(join(local.path, 'whole'), BYTES);
    const file = `${proxy.url}${FILES}/through.bin`;
    expect(await curl('-T', 'whole', file)).toBe(413);
    const upload = `${proxy.url}/remote.php/dav/uploads/tester/through`;
    expect(await curl('-X', 'MKCOL', upload, '-H', `Destination: ${file}`)).toBe(201);
    for (let start = 0; start < BYTES.length; start += PIECE_BYTES) {
      await writeFile(join(local.path, 'piece'), BYTES.subarray(start, start + PIECE_BYTES));
      const headers = ['-H', `Destination: ${file}`, '-H', `OC-Total-Length: ${BYTES.length}`];
      expect(await curl(...headers, '-T', 'piece', `${upload}/${1 + start / PIECE_BYTES}`)).toBe(201);
    }
    const headers = ['-H', `Destination: ${file}`, '-H', `OC-Total-Length: ${BYTES.length}`];
    expect(await curl('-X', 'MOVE', ...headers, `${upload}/.file`)).toBe(201);
    await rclone.run('copyto', 'drive:through.bin', join(local.path, 'through.bin'));
    expect((await readFile(join(local.path, 'through.bin'))).equals(BYTES)).toBe(true);
  } finally {
    await proxy.stop();
  }
});
