import dns from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ROUTES } from '../../src/service/routes/table.ts';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { expectSoon } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, put, rpc, send, sharedLink } from '../support/service-client.ts';

const anyPort = { host: '127.0.0.1', port: 0 };

/** Calls a function with an empty argument. The host is checked before the argument. */
const call = (url: string, name: string) =>
  send(`${url}/2/${name}`, { method: 'POST', headers: { 'dropbox-api-arg': '{}' } });

test('a request that arrives while the content address is being opened waits, and its answer names that address', async () => {
  const port = await freePort();
  const { lookup } = dns;
  let resolveName: (() => void) | undefined;
  const spy = vi.spyOn(dns, 'lookup').mockImplementation(((name: string, ...rest: unknown[]) => {
    const find = () => Reflect.apply(lookup, dns, ['127.0.0.1', ...rest]);
    if (name === 'content.example') resolveName = find;
    else find();
  }) as typeof dns.lookup); // overloaded: every form has the name first
  onTestFinished(() => spy.mockRestore());
  const starting = startTestService({
    listen: { host: '127.0.0.1', port },
    contentListen: { host: 'content.example', port: 0 },
  });
  await expectSoon(() => resolveName).toBeDefined();
  const early = call(`http://127.0.0.1:${port}`, 'files/upload');
  await Promise.race([early, sleep(200)]); // an answer that does not wait arrives in this time
  resolveName?.();
  const service = await starting;
  onTestFinished(() => service.close());
  expect((await early).text).toContain(`issue the request to ${service.service.contentUrl}`);
});

describe('service with a content address', () => {
  let service: TestService;
  let contentUrl: string;
  beforeAll(async () => {
    service = await startTestService({ contentListen: anyPort });
    ({ contentUrl } = service.service);
  });
  afterAll(() => service.close());

  test.each([...ROUTES.values()].map(({ name, host }) => [name, host] as const))(
    '%s is answered by the %s host, and refused by the other one with the right address',
    async (name, host) => {
      const [right, wrong] = host === 'content' ? [contentUrl, service.url] : [service.url, contentUrl];
      expect((await call(right, name)).text).not.toContain('Incorrect host');
      const refused = await call(wrong, name);
      expect([refused.status, refused.text]).toEqual([
        400,
        `Error in call to API function "${name}": Incorrect host for API function ${name}.  You must issue the request to ${right}`,
      ]);
    },
  );

  test('the content host takes uploads and downloads, and the base host answers their metadata', async () => {
    const onContent = { ...service, url: contentUrl };
    const { rev } = await put(onContent, '/file', 'bytes');
    expect((await rpc(service, 'files/get_metadata', { path: '/file' })).json).toMatchObject({ rev });
    const downloaded = await send(`${contentUrl}/2/files/download`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'dropbox-api-arg': headerJson({ path: '/file' }) },
    });
    expect(downloaded.text).toBe('bytes');
  });

  test('the content host answers links, consent page and token endpoint with 404', async () => {
    await put({ ...service, url: contentUrl }, '/linked', 'text');
    const link = new URL(await sharedLink(service, '/linked'));
    expect(link.origin).toBe(service.url);
    for (const path of [
      link.pathname + link.search,
      '/oauth2/authorize',
      '/oauth2/token',
      '/embed.js',
      '/',
    ]) {
      const answered = await send(contentUrl + path, {});
      expect([answered.status, answered.text], path).toEqual([
        404,
        `This host has only the functions that carry file bytes; all others are at ${service.url}`,
      ]);
    }
    expect((await send(link.href, {})).status).toBe(200);
  });

  test('both hosts answer a CORS preflight', async () => {
    for (const url of [service.url, contentUrl])
      expect((await send(`${url}/2/files/upload`, { method: 'OPTIONS' })).status).toBe(200);
  });

  test('a service whose content port is taken frees its other port', async () => {
    const taken = { host: '127.0.0.1', port: Number(new URL(service.url).port) };
    const free = await startTestService();
    const listen = { host: '127.0.0.1', port: Number(new URL(free.url).port) };
    await free.close();
    await expect(startTestService({ listen, contentListen: taken })).rejects.toMatchObject({
      name: 'ListenError',
    });
    const again = await startTestService({ listen });
    await again.close();
  });
});

describe('service with public addresses', () => {
  const publicUrl = 'https://files.example.org';
  const contentPublicUrl = 'https://content.example.org/davgate';
  let service: TestService;
  let contentUrl: string;
  beforeAll(async () => {
    service = await startTestService({
      contentListen: anyPort,
      publicUrl: `${publicUrl}/`,
      contentPublicUrl: `${contentPublicUrl}/`,
    });
    ({ contentUrl } = service.service);
    await put({ ...service, url: contentUrl }, '/file', 'bytes');
  });
  afterAll(() => service.close());

  test('a temporary link begins with the public address of the content host, which serves it', async () => {
    const { json } = await rpc(service, 'files/get_temporary_link', { path: '/file' });
    const { link } = json as { link: string };
    expect(link.startsWith(`${contentPublicUrl}/cd/0/get/`)).toBe(true);
    expect((await send(link.replace(contentPublicUrl, contentUrl), {})).text).toBe('bytes');
  });

  test('a temporary upload link begins with the public address of the content host, which serves it', async () => {
    const commit_info = { path: '/sent' };
    const { json } = await rpc(service, 'files/get_temporary_upload_link', { commit_info });
    const { link } = json as { link: string };
    expect(link.startsWith(`${contentPublicUrl}/apitul/1/`)).toBe(true);
    const headers = { 'content-type': 'application/octet-stream' };
    const sent = await send(link.replace(contentPublicUrl, contentUrl), {
      method: 'POST',
      headers,
      body: 'x',
    });
    expect(sent.status).toBe(200);
  });

  test('a shared link begins with the public address of the base host', async () => {
    expect((await sharedLink(service, '/file')).startsWith(`${publicUrl}/scl/fi/`)).toBe(true);
  });

  test('a function on the wrong host is refused with the public address of the right one', async () => {
    expect((await call(service.url, 'files/download')).text).toContain(
      `issue the request to ${contentPublicUrl}`,
    );
    expect((await call(contentUrl, 'files/get_metadata')).text).toContain(
      `issue the request to ${publicUrl}`,
    );
    expect((await send(contentUrl, {})).text).toContain(`all others are at ${publicUrl}`);
  });
});

test('a temporary link begins with publicUrl where the content host has no public address', async () => {
  const service = await startTestService({ contentListen: anyPort, publicUrl: 'https://files.example.org' });
  try {
    await put({ ...service, url: service.service.contentUrl }, '/file', 'bytes');
    const { json } = await rpc(service, 'files/get_temporary_link', { path: '/file' });
    expect((json as { link: string }).link).toMatch(/^https:\/\/files\.example\.org\/cd\//);
  } finally {
    await service.close();
  }
});

test('a malformed contentPublicUrl is refused at the start', async () => {
  await expect(startTestService({ contentPublicUrl: 'content.example.org' })).rejects.toThrow(
    '"content.example.org" is not a public URL; give one like https://files.example',
  );
});

test('a service with one address answers every function there', async () => {
  const service = await startTestService();
  try {
    expect(service.service.contentUrl).toBe(service.url);
    for (const name of ROUTES.keys())
      expect((await call(service.url, name)).text).not.toContain('Incorrect host');
  } finally {
    await service.close();
  }
});

test('a link of a service on all addresses begins with the host name of the machine', async () => {
  const service = await startTestService({ listen: { host: '::', port: 0 } });
  try {
    await put(service, '/named', 'text');
    expect(new URL(await sharedLink(service, '/named')).hostname).toBe(hostname().toLowerCase());
  } finally {
    await service.close();
  }
});

describe('service with a certificate', () => {
  let certificate: Certificate;
  let service: TestService;
  let contentUrl: string;
  beforeAll(async () => {
    certificate = await makeCertificate(['localhost'], '127.0.0.1');
    const keyFile = join(certificate.file, '..', 'key.pem');
    const tls = { certFile: certificate.file, keyFile };
    service = await startTestService({ listen: anyPort, contentListen: anyPort, tls });
    ({ contentUrl } = service.service);
  });
  afterAll(async () => {
    await service.close();
    await certificate.remove();
  });

  async function sendTls(
    url: string,
    { method = 'POST', headers = {}, body = '' },
  ): Promise<{ status: number | undefined; text: string }> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = requestTls(url, { method, headers, ca: certificate.cert, agent: false }, resolve);
      asked.on('error', reject).end(body);
    });
    let text = '';
    for await (const chunk of answer) text += chunk;
    return { status: answer.statusCode, text };
  }

  const authorization = () => ({ authorization: `Bearer ${service.token}` });

  test('a service with a certificate serves https on both addresses, and its links begin with https', async () => {
    expect([service.url, contentUrl].map((url) => new URL(url).protocol)).toEqual(['https:', 'https:']);
    const uploaded = await sendTls(`${contentUrl}/2/files/upload`, {
      headers: {
        ...authorization(),
        'content-type': 'application/octet-stream',
        'dropbox-api-arg': headerJson({ path: '/secure' }),
      },
      body: 'over TLS',
    });
    expect(uploaded.status).toBe(200);
    const made = await sendTls(`${service.url}/2/sharing/create_shared_link_with_settings`, {
      headers: { ...authorization(), 'content-type': 'application/json' },
      body: JSON.stringify({ path: '/secure' }),
    });
    const { url } = JSON.parse(made.text) as { url: string };
    expect(url.startsWith(`${service.url}/scl/fi/`)).toBe(true);
    const bytes = await sendTls(url.replace('dl=0', 'dl=1'), { method: 'GET' });
    expect(bytes).toEqual({ status: 200, text: 'over TLS' });
  });

  test('a service with a certificate and a key of another one does not start', async () => {
    const other = await makeCertificate(['localhost'], '127.0.0.1');
    const tls = { certFile: certificate.file, keyFile: join(other.file, '..', 'key.pem') };
    await expect(startTestService({ tls })).rejects.toThrow(/cannot serve https with .*key values mismatch/);
    await other.remove();
  });
});
