import { once } from 'node:events';
import { copyFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import {
  matchOutput,
  runProgram,
  spawnProgram,
  startServiceProgram,
  temporaryDirectory,
} from '../support/program.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let certificate: Certificate;
let tls: readonly string[];

beforeAll(async () => {
  directory = await temporaryDirectory();
  certificate = await makeCertificate(['localhost'], '127.0.0.1');
  tls = ['--tls-cert', certificate.file, '--tls-key', join(certificate.file, '..', 'key.pem')];
});
afterAll(async () => {
  await directory.remove();
  await certificate.remove();
});

/** Sends a GET over https; returns the status and text of the answer. */
function get(url: string): Promise<readonly [number | undefined, string]> {
  return new Promise((resolve, reject) => {
    const outgoing = requestTls(url, { ca: certificate.cert, agent: false }, async (answer) => {
      let text = '';
      for await (const chunk of answer) text += chunk;
      resolve([answer.statusCode, text]);
    });
    outgoing.on('error', reject).end();
  });
}

test('davgate serves a drive from a service with https, a host for content and a public URL', async () => {
  const publicUrl = 'https://files.example.org';
  const args = [...tls, '--content-listen', '127.0.0.1:0', '--public-url', `${publicUrl}/`];
  const service = await startServiceProgram(join(directory.path, 'service'), ...args);
  const contentUrl = /content_url +(\S+)/.exec(service.output())?.[1] ?? '';
  expect([service.url, contentUrl].map((url) => new URL(url).protocol)).toEqual(['https:', 'https:']);
  expect(contentUrl).not.toBe(service.url);
  const { child, output } = spawnProgram(
    [
      ...['--listen', '127.0.0.1:0', '--no-auth', '--data-dir', join(directory.path, 'drive')],
      ...['--cache-dir', join(directory.path, 'cache')],
      ...['--api-url', service.url, '--content-url', contentUrl],
    ],
    { ...process.env, DAVGATE_TOKEN: service.token, NODE_EXTRA_CA_CERTS: certificate.file },
  );
  const drive = await matchOutput(child, output, /http:\/\/127\.0\.0\.1:\d+\//);
  expect((await fetch(`${drive}file.txt`, { method: 'PUT', body: 'over two hosts' })).status).toBe(201);
  expect(await (await fetch(`${drive}file.txt`)).text()).toBe('over two hosts');
  const body = `<D:propertyupdate xmlns:D="DAV:" xmlns:g="https://davgate.dev/ns">
    <D:set><D:prop><g:shared-link/></D:prop></D:set></D:propertyupdate>`;
  expect((await fetch(`${drive}file.txt`, { method: 'PROPPATCH', body })).status).toBe(207);
  const propfind = `<D:propfind xmlns:D="DAV:" xmlns:g="https://davgate.dev/ns"><D:prop><g:shared-link/></D:prop></D:propfind>`;
  const shown = await fetch(`${drive}file.txt`, {
    method: 'PROPFIND',
    body: propfind,
    headers: { depth: '0' },
  });
  const [link = ''] = /https:\/\/files[^<]*/.exec(await shown.text()) ?? [];
  expect(link.startsWith(`${publicUrl}/scl/fi/`)).toBe(true);
  const bytes = link.replace(publicUrl, service.url).replaceAll('&amp;', '&').replace('dl=0', 'dl=1');
  expect(await get(bytes)).toEqual([200, 'over two hosts']);
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  expect(await service.stop()).toBe(0);
});

describe('SIGHUP to davgate service', () => {
  const file = (name: string) => join(directory.path, name);

  async function useCertificate({ file: cert }: Certificate): Promise<void> {
    await copyFile(cert, file('cert.pem'));
    await copyFile(join(cert, '..', 'key.pem'), file('key.pem'));
  }

  /** Returns the fingerprint of the certificate that a new connection gets. */
  async function shownCertificate(url: string): Promise<string> {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  }

  const call = async (url: string, name: string, token: string, path: string, body: Buffer) => {
    const outgoing = requestTls(`${url}/2/files/${name}`, {
      method: 'POST',
      rejectUnauthorized: false,
      agent: false,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/octet-stream',
        'dropbox-api-arg': JSON.stringify({ path }),
      },
    });
    outgoing.end(body);
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]; // 'response' passes the answer
    return answer;
  };

  test('SIGHUP makes davgate service use a renewed certificate on both addresses while a download goes on, and keep it when the next cannot be read', async () => {
    const other = await makeCertificate(['localhost'], '127.0.0.1');
    await useCertificate(certificate);
    const args = [
      '--tls-cert',
      file('cert.pem'),
      '--tls-key',
      file('key.pem'),
      '--content-listen',
      '127.0.0.1:0',
    ];
    const service = await startServiceProgram(file('renewed'), ...args);
    const contentUrl = /content_url +(\S+)/.exec(service.output())?.[1] ?? '';
    const bytes = pseudoRandomBytes(24 * 2 ** 20, 7);
    const uploaded = await call(contentUrl, 'upload', service.token, '/film', bytes);
    expect(uploaded.resume().statusCode).toBe(200);
    const before = await shownCertificate(service.url);
    const download = await call(contentUrl, 'download', service.token, '/film', Buffer.alloc(0));
    await once(download, 'readable');

    await useCertificate(other);
    process.kill(service.pid, 'SIGHUP');
    await eventually(() => expect(service.output()).toMatch(/certificate reloaded/));
    const after = [await shownCertificate(service.url), await shownCertificate(contentUrl)];
    expect(after[0]).not.toBe(before);
    expect(after[1]).toBe(after[0]);
    expect((await buffer(download)).equals(bytes)).toBe(true);

    await writeFile(file('key.pem'), '');
    process.kill(service.pid, 'SIGHUP');
    await eventually(() =>
      expect(service.output()).toMatch(/cannot reload the certificate; .* reason="cannot serve https with/),
    );
    expect([await shownCertificate(service.url), await shownCertificate(contentUrl)]).toEqual(after);
    expect(await service.stop()).toBe(0);
    await other.remove();
  });

  test('davgate service prints the public address of its content host; SIGHUP to it without a certificate is logged in one line, and it goes on', async () => {
    const publicUrl = 'https://content.example.org';
    const args = ['--content-listen', '127.0.0.1:0', '--content-public-url', `${publicUrl}/`];
    const service = await startServiceProgram(file('plain'), ...args);
    expect(service.output()).toMatch(/content_url +https:\/\/content\.example\.org\n/);
    expect(service.output()).toContain(`--api-url ${service.url} --content-url ${publicUrl}\n`);
    const notes = () => service.output().match(/SIGHUP.*nothing to reload/g) ?? [];
    for (const count of [1, 2]) {
      process.kill(service.pid, 'SIGHUP');
      await eventually(() => expect(notes()).toHaveLength(count));
    }
    const answer = await fetch(`${service.url}/2/files/list_folder`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ path: '' }),
    });
    expect(answer.status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});

// test/unit/cli/program.test.ts tests wrong usages without a process for each.
test('davgate service with a certificate that cannot be read ends with exit code 2 and says what is wrong', async () => {
  const words = ['service', '--listen', '127.0.0.1:0', '--data', join(directory.path, 'none')];
  const { code, output } = await runProgram([...words, '--tls-cert', '/none.pem', '--tls-key', '/none.key']);
  expect([code, output]).toEqual([
    2,
    expect.stringContaining('cannot read the certificate /none.pem: no such file'),
  ]);
});
