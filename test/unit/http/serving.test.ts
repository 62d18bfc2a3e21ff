import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { startGatewayServer } from '../../../src/http/gateway-server.ts';
import { CertificateError, type CertificateFiles, ListenError } from '../../../src/http/node-server.ts';
import { hashPassword } from '../../../src/http/passwords.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { unhurried } from '../../support/unhurried.ts';

describe('cross-origin requests', () => {
  const ORIGIN = 'https://app.example.org';
  const preflight =
    `Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: PROPFIND\r\n` +
    'Access-Control-Request-Headers: authorization, depth\r\n';

  test('a preflight from an allowed origin is answered without a login', async () => {
    const { connect } = await listening({ users: [ANN], crossOrigins: [ORIGIN] });
    const answer = await connect(request('OPTIONS', '/a', preflight)).until('\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain(`Access-Control-Allow-Origin: ${ORIGIN}\r\n`);
    expect(answer).toMatch(/Access-Control-Allow-Methods: [A-Z, ]*PROPFIND/);
    expect(answer).toContain('Access-Control-Allow-Headers: authorization, depth\r\n');
    expect(answer).toContain('Vary: Origin\r\n');
  });

  test.each([
    ['no origin is allowed', undefined],
    ['another origin is allowed', ['https://app.example.org.evil.example']],
  ])('when %s, preflights and answers have no Access-Control headers', async (_, crossOrigins) => {
    const { connect } = await listening({ users: [ANN], ...(crossOrigins && { crossOrigins }) });
    const connection = connect(request('OPTIONS', '/a', preflight));
    expect(await connection.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 (?![\s\S]*Access-Control)/);
    connection.send(request('GET', '/', `Origin: ${ORIGIN}\r\n${ANN_HEADER}`));
    expect(await connection.until('handled')).not.toContain('Access-Control');
  });

  test('an allowed origin can read answers, and also the 401 of a missing login', async () => {
    const { connect } = await listening({ users: [ANN], crossOrigins: [ORIGIN] });
    const connection = connect(request('GET', '/', `Origin: ${ORIGIN}\r\n`));
    expect(await connection.until('of this davgate')).toContain(`Access-Control-Allow-Origin: ${ORIGIN}\r\n`);
    connection.send(request('GET', '/', `Origin: ${ORIGIN}\r\n${ANN_HEADER}`));
    expect(await connection.until('handled')).toMatch(
      /200 OK[\s\S]*Access-Control-Expose-Headers: [^\r]*ETag/,
    );
  });

  test('OPTIONS that is not a preflight needs a login', async () => {
    const { connect } = await listening({ users: [ANN], crossOrigins: [ORIGIN] });
    expect(
      await connect(request('OPTIONS', '/', `Origin: ${ORIGIN}\r\n`)).until('of this davgate'),
    ).toContain(' 401 ');
  });
});

describe('fetch metadata', () => {
  const fetched = (site: string, mode: string, dest: string) =>
    `Sec-Fetch-Site: ${site}\r\nSec-Fetch-Mode: ${mode}\r\nSec-Fetch-Dest: ${dest}\r\n`;

  test.each([
    ['a script', 'GET', fetched('cross-site', 'no-cors', 'script')],
    ['an image of a page on the same site', 'GET', fetched('same-site', 'no-cors', 'image')],
    ['a frame', 'GET', fetched('cross-site', 'navigate', 'iframe')],
    ['a form', 'POST', fetched('cross-site', 'navigate', 'document')],
    ['a fetch', 'GET', `Origin: https://evil.example\r\n${fetched('cross-site', 'cors', 'empty')}`],
  ])("a request of another site's page for %s answers 403", async (_, method, lines) => {
    const { connect } = await listening({ crossOrigins: ['https://app.example.org'] });
    const answer = await connect(request(method, '/s.js', `${lines}Connection: close\r\n`)).closed();
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).not.toContain('handled');
  });

  test.each([
    ['a link that opens in a window', fetched('cross-site', 'navigate', 'document')],
    ['a typed URL', fetched('none', 'navigate', 'document')],
    ['a page of the gateway', fetched('same-origin', 'no-cors', 'image')],
    ['an allowed origin', `Origin: https://app.example.org\r\n${fetched('cross-site', 'cors', 'empty')}`],
    ['a program that is no browser', ''],
  ])('a request from %s is answered', async (_, lines) => {
    const { connect } = await listening({ crossOrigins: ['https://app.example.org'] });
    expect(await connect(request('GET', '/s.js', lines)).until('handled')).toContain('200 OK');
  });

  test.each([
    ['a file', request('GET', '/')],
    ['a refused login', request('PROPFIND', '/')],
    ['health', request('GET', '/.davgate/healthz')],
    ['a request without a host', 'GET / HTTP/1.1\r\n\r\n'],
    ['a malformed request', 'nonsense\r\n\r\n'],
    ['a handler that failed', request('GET', '/fail')],
  ])('the answer to %s has Cross-Origin-Resource-Policy: same-origin', async (_, text) => {
    const { connect } = await listening({
      ...(text.startsWith('PROPFIND') && { users: [ANN] }),
      handle: async ({ url }, _response, _access, exchange) => {
        if (url === '/fail') throw new Error('inner reasons');
        await exchange.answer({ status: 200, headers: {}, body: 'handled' });
      },
    });
    const answer = await connect(text).until('\r\n\r\n');
    expect(answer).toContain('\r\nCross-Origin-Resource-Policy: same-origin\r\n');
  });

  test('the answer to an allowed origin has Cross-Origin-Resource-Policy: cross-origin', async () => {
    const { connect } = await listening({ crossOrigins: ['https://app.example.org'] });
    const connection = connect(request('GET', '/', 'Origin: https://app.example.org\r\n'));
    expect(await connection.until('handled')).toContain('Cross-Origin-Resource-Policy: cross-origin\r\n');
  });
});

describe('https', () => {
  const file = (name: string) => join(import.meta.dirname, '../../support/certificates', name);
  const files = () => ({ certFile: file('one.pem'), keyFile: file('one.key') });

  test('https serves with the certificate, and its URL begins with https', async () => {
    const { url, port } = await listening({ tls: files(), users: [ANN] });
    expect(url).toBe(`https://127.0.0.1:${port}/`);
    const answer = await new Promise<string>((resolve, reject) => {
      const options = { port, rejectUnauthorized: false, auth: 'ann:secret', agent: false };
      requestTls(options, async (message) => {
        let body = '';
        for await (const chunk of message) body += chunk;
        resolve(`${message.statusCode} ${body}`);
      })
        .on('error', reject)
        .end();
    });
    expect(answer).toBe('200 handled');
  });

  test('https cuts an upload that stands still, and not one that proceeds', async () => {
    const clock = new ManualClock();
    let got = (): void => undefined;
    const { port, lines } = await listening({
      tls: files(),
      clock,
      handle: async (message) => {
        for await (const _ of message) got();
      },
    });
    const socket = connectTls({ port, rejectUnauthorized: false });
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const send = (text: string) =>
      new Promise<void>((resolve) => {
        got = resolve;
        socket.write(text);
      });
    await send(request('PUT', '/', 'Content-Length: 10\r\n', 'a'));
    for (let sent = 2; sent < 10; sent++) {
      await clock.advance(100_000);
      await send('a');
    }
    expect(lines).toEqual([]);
    await clock.advance(160_000);
    await closed;
    expect(lines[0]?.event).toBe('idle client disconnected');
  });

  test('a server with https closes while a handshake is unfinished', async () => {
    const { connect, close } = await listening({ tls: files() });
    const connection = connect();
    await new Promise((resolve) => connection.socket.once('connect', resolve));
    await close();
    expect(await connection.closed()).toBe('');
  });

  const start = (tls: CertificateFiles) =>
    startGatewayServer({
      host: '127.0.0.1',
      port: 0,
      tls,
      users: undefined,
      driveOf: () => undefined,
      handle: async () => undefined,
      log: silentLog,
    });

  test.each([
    ['a missing certificate', 'none.pem', 'one.key', /certificate .*none\.pem: no such file/],
    ['a missing key', 'one.pem', 'none.key', /key .*none\.key: no such file/],
    ['no certificate', 'one.key', 'one.key', /https with .*one\.key and .*one\.key: .*PEM/],
    ['the key of another certificate', 'one.pem', 'other.key', /other\.key: .*key.*mismatch/i],
  ])('https with %s is refused with the name of the file', async (_, certFile, keyFile, message) => {
    const starting = start({ certFile: file(certFile), keyFile: file(keyFile) });
    await expect(starting).rejects.toThrow(CertificateError);
    await expect(starting).rejects.toThrow(message);
  });

  test.each([
    ['none.pem', /certificate of the authority .*none\.pem: no such file/],
    ['one.key', /one\.key has no certificate of an authority: give the PEM file/],
  ])('https for clients of the authority %s is refused with the name of the file', async (name, message) => {
    const starting = start({ ...files(), clientCaFile: file(name) });
    await expect(starting).rejects.toThrow(CertificateError);
    await expect(starting).rejects.toThrow(message);
  });
});

describe('reload', () => {
  const file = (name: string) => join(import.meta.dirname, '../../support/certificates', name);
  const files = (name: string) => ({ certFile: file(`${name}.pem`), keyFile: file(`${name}.key`) });
  const fingerprint = (port: number) =>
    new Promise<string>((resolve, reject) => {
      const socket = connectTls({ port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      });
      socket.on('error', reject);
    });

  test('reload with a new certificate serves it to new connections, and with an invalid one keeps the old certificate', async () => {
    const { port, listener } = await listening({ tls: files('one') });
    const first = await fingerprint(port);
    listener.reload({ tls: files('other') });
    const second = await fingerprint(port);
    expect(second).not.toBe(first);
    expect(() => listener.reload({ tls: { ...files('one'), keyFile: file('other.key') } })).toThrow(
      CertificateError,
    );
    expect(await fingerprint(port)).toBe(second);
  });

  test('reload with new users accepts the new password and refuses the old one on open connections', async () => {
    const { connect, listener } = await listening({ users: [ANN] });
    const connection = connect(request('GET', '/', ANN_HEADER));
    await connection.until('handled');
    expect(() => listener.reload({ users: [{ ...ANN, passwordHash: 'geheim' }] })).toThrow('user ann');
    listener.reload({ users: [{ ...ANN, passwordHash: await hashPassword('new', { n: 2, r: 1, p: 1 }) }] });
    connection.send(request('GET', '/', ANN_HEADER));
    await connection.until('of this davgate');
    const header = `Authorization: Basic ${Buffer.from('ann:new').toString('base64')}\r\n`;
    expect(await connect(request('GET', '/', header)).until('handled')).toContain('200 OK');
  });
});

describe('the listening address', () => {
  const start = (host: string, port: number) =>
    startGatewayServer({
      host,
      port,
      users: undefined,
      driveOf: () => undefined,
      handle: async () => undefined,
      log: silentLog,
    });

  test('an address that is in use, or that this machine does not have, is refused with its name', async () => {
    const { port } = await listening();
    const inUse = start('127.0.0.1', port);
    await expect(inUse).rejects.toThrow(ListenError);
    await expect(inUse).rejects.toThrow(`cannot listen on 127.0.0.1:${port}: another program uses that port`);
    await expect(start('192.0.2.1', 8765)).rejects.toThrow(/192\.0\.2\.1:8765: this machine does not have/);
  });

  test('a server on all addresses reports its URL with localhost', async () => {
    const listener = await start('0.0.0.0', 0);
    expect(listener.url).toBe(`http://localhost:${listener.port}/`);
    await listener.close(unhurried());
  });

  test("a user with an invalid password hash is refused with the user's name", async () => {
    const users = [{ ...ANN, passwordHash: 'geheim' }];
    const starting = startGatewayServer({
      host: '127.0.0.1',
      port: 0,
      users,
      driveOf: () => undefined,
      handle: async () => undefined,
      log: silentLog,
    });
    await expect(starting).rejects.toThrow('user ann: not a password hash');
  });
});
