import { once } from 'node:events';
import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
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

/** The status and text of a GET over https. */
function get(url: string): Promise<readonly [number | undefined, string]> {
  return new Promise((resolve, reject) => {
    const asked = requestTls(url, { ca: certificate.cert, agent: false }, async (answer) => {
      let text = '';
      for await (const chunk of answer) text += chunk;
      resolve([answer.statusCode, text]);
    });
    asked.on('error', reject).end();
  });
}

test('a drive works on a service with https, a host for content and a public address', async () => {
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
  const asked = `<D:propfind xmlns:D="DAV:" xmlns:g="https://davgate.dev/ns"><D:prop><g:shared-link/></D:prop></D:propfind>`;
  const told = await fetch(`${drive}file.txt`, { method: 'PROPFIND', body: asked, headers: { depth: '0' } });
  const [link = ''] = /https:\/\/files[^<]*/.exec(await told.text()) ?? [];
  expect(link.startsWith(`${publicUrl}/scl/fi/`)).toBe(true);
  const bytes = link.replace(publicUrl, service.url).replaceAll('&amp;', '&').replace('dl=0', 'dl=1');
  expect(await get(bytes)).toEqual([200, 'over two hosts']);
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  expect(await service.stop()).toBe(0);
});

test.each([
  [['--tls-cert', 'x.pem'], '--tls-cert: a certificate without its key; give --tls-key too'],
  [['--tls-key', 'x.pem'], '--tls-key: a key without its certificate; give --tls-cert too'],
  [
    ['--tls-cert', '/none.pem', '--tls-key', '/none.key'],
    'cannot read the certificate /none.pem: no such file',
  ],
  [['--content-listen', 'here'], '--content-listen: "here" is not HOST:PORT'],
  [
    ['--public-url', 'files.example.org'],
    '--public-url: "files.example.org" is not an address like https://',
  ],
])('davgate service %j ends with exit code 2 and says what is wrong', async (args, text) => {
  const words = ['service', '--listen', '127.0.0.1:0', '--data', join(directory.path, 'none'), ...args];
  const { code, output } = await runProgram(words);
  expect([code, output]).toEqual([2, expect.stringContaining(text)]);
});
