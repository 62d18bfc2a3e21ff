import type { ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { afterEach, describe, expect, test } from 'vitest';
import type { HostAddress } from '../../src/service/save-url/web-files.ts';
import type { LogFields } from '../../src/util/log.ts';
import { Networks } from '../../src/util/networks.ts';
import { makeCertificate } from '../support/certificate.ts';
import { expectSoon } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { DOWNLOAD_FAILED, endOfSave, launchSave } from '../support/save-url.ts';
import { startTestService } from '../support/service.ts';
import { download, rpc } from '../support/service-client.ts';
import { startWebHost } from '../support/web-host.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts a service whose log is kept. */
async function started(options: Parameters<typeof startTestService>[0] = {}) {
  const lines: LogFields[] = [];
  const note = (event: string, fields: LogFields = {}) => void lines.push({ event, ...fields });
  const service = await startTestService({ ...options, log: { info: note, warn: note, error: note } });
  closers.push(() => service.close());
  const save = async (url: string) => endOfSave(service, await launchSave(service, url, '/saved'));
  const reasons = () =>
    lines.filter(({ event }) => event === 'save_url could not fetch a file').map(({ reason }) => reason);
  return { service, save, reasons };
}

async function hostOn(...options: Parameters<typeof startWebHost>) {
  const host = await startWebHost(...options);
  closers.push(() => host.close());
  return host;
}

const NOT_PUBLIC = 'its host has no public address';
/** Loopback addresses for the public Internet and for a private network. */
const [PUBLIC, PRIVATE] = ['127.0.0.1', '127.0.0.2'];
const webFiles = { allowedNetworks: new Networks([PUBLIC]) };

describe('addresses that save_url may use', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '0.0.0.0',
    'localhost',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
  ])('save_url does not connect to this machine as %s', async (name) => {
    const host = await hostOn((_request, response) => response.end('secret'), { host: '::' });
    const { save, reasons } = await started();
    expect(await save(`http://${name}:${host.port}/`)).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual([NOT_PUBLIC]);
    expect(host.asked).toEqual([]);
  });

  test.each(['10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1', '169.254.169.254', '224.0.0.1'])(
    'save_url does not connect to %s, as an address or behind a name',
    async (address) => {
      const { save, reasons } = await started({
        webFiles: { resolve: async () => [{ address, family: 4 }] },
      });
      for (const name of [address, 'name.example'])
        expect(await save(`http://${name}/`)).toEqual(DOWNLOAD_FAILED);
      expect(reasons()).toEqual([NOT_PUBLIC, NOT_PUBLIC]);
    },
  );

  test.each(['fc00::1', 'fe80::1', '::1', '::ffff:10.0.0.1', 'ff02::1'])(
    'save_url does not connect to %s, as an address or behind a name',
    async (address) => {
      const { save, reasons } = await started({
        webFiles: { resolve: async () => [{ address, family: 6 }] },
      });
      for (const name of [`[${address}]`, 'name.example'])
        expect(await save(`http://${name}/`)).toEqual(DOWNLOAD_FAILED);
      expect(reasons()).toEqual([NOT_PUBLIC, NOT_PUBLIC]);
    },
  );

  test('save_url does not follow a redirect into a private network', async () => {
    const inner = await hostOn((_request, response) => response.end('secret'), { host: PRIVATE });
    const host = await hostOn((_request, response) =>
      response.writeHead(302, { location: `${inner.url}/` }).end(),
    );
    const { save, reasons } = await started({ webFiles });
    expect(await save(host.url)).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual([NOT_PUBLIC]);
    expect([host.asked, inner.asked]).toEqual([['/'], []]);
  });

  test('save_url connects to the address that it checked when the name then resolves to another one', async () => {
    const host = await hostOn((_request, response) => response.end('public'), { host: PUBLIC });
    const { port } = host;
    const inner = await hostOn((_request, response) => response.end('secret'), { host: PRIVATE, port });
    const names: string[] = [];
    const resolve = async (name: string): Promise<HostAddress[]> => {
      names.push(name);
      return [{ address: names.length === 1 ? PUBLIC : PRIVATE, family: 4 }];
    };
    const { service, save, reasons } = await started({ webFiles: { ...webFiles, resolve } });
    expect(await save(`http://rebinding.example:${port}/first`)).toMatchObject({ '.tag': 'complete' });
    expect((await download(service, '/saved')).text).toBe('public');
    expect(names).toEqual(['rebinding.example']);
    expect(await save(`http://rebinding.example:${port}/second`)).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual([NOT_PUBLIC]);
    expect([host.asked, inner.asked]).toEqual([['/first'], []]);
  });

  test('save_url resolves and checks the name again for a redirect to the same host', async () => {
    const host = await hostOn((_request, response) => response.writeHead(302, { location: '/next' }).end());
    const answers = [PUBLIC, PRIVATE];
    const resolve = async () => [{ address: answers.shift() ?? PUBLIC, family: 4 }];
    const { save, reasons } = await started({ webFiles: { ...webFiles, resolve } });
    expect(await save(`http://rebinding.example:${host.port}/`)).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual([NOT_PUBLIC]);
    expect(host.asked).toEqual(['/']);
  });

  test('save_url skips the private addresses of a name that has public ones too', async () => {
    const host = await hostOn((_request, response) => response.end('public'), { host: PUBLIC });
    const { port } = host;
    const inner = await hostOn((_request, response) => response.end('secret'), { host: PRIVATE, port });
    const resolve = async () => [PRIVATE, PUBLIC, PRIVATE].map((address) => ({ address, family: 4 }));
    const { save } = await started({ webFiles: { ...webFiles, resolve } });
    expect(await save(`http://both.example:${port}/`)).toMatchObject({ '.tag': 'complete', size: 6 });
    expect([host.asked, inner.asked]).toEqual([['/'], []]);
  });

  test('save_url sends no request to a host whose certificate is not trusted', async () => {
    const certificate = await makeCertificate(['localhost'], PUBLIC);
    closers.push(() => certificate.remove());
    const host = await hostOn((_request, response) => response.end('text'), {
      server: createTlsServer(certificate),
    });
    const { save, reasons } = await started({ webFiles });
    expect(await save(host.url.replace('http:', 'https:'))).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual([expect.stringContaining('self-signed certificate')]);
    expect(host.asked).toEqual([]);
  });

  test('save_url logs the host of a URL without its password, path and query', async () => {
    const host = await hostOn((_request, response) => response.writeHead(404).end());
    const lines: string[] = [];
    const note = (event: string, fields = {}) => void lines.push(JSON.stringify({ event, ...fields }));
    const service = await startTestService({ webFiles, log: { info: note, warn: note, error: note } });
    closers.push(() => service.close());
    const url = `http://ann:secret@${PUBLIC}:${host.port}/private?key=hidden`;
    expect(await endOfSave(service, await launchSave(service, url, '/saved'))).toEqual(DOWNLOAD_FAILED);
    expect(lines.filter((line) => line.includes('save_url'))).toEqual([
      JSON.stringify({
        event: 'save_url could not fetch a file',
        host: `${PUBLIC}:${host.port}`,
        reason: 'its host answered 404',
      }),
    ]);
    expect(lines.join()).not.toMatch(/secret|hidden/);
  });
});

describe('time limits of save_url', () => {
  test('save_url gives a host 30 s to begin its answer', async () => {
    const clock = new ManualClock();
    const host = await hostOn(() => undefined);
    const { save, reasons } = await started({ clock, webFiles });
    expect(await clock.during(save(host.url))).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual(['its host was silent for 30000 ms']);
  });

  test('save_url gives a host 60 s between two bytes', async () => {
    const clock = new ManualClock();
    const host = await hostOn((_request, response) => void response.write('a beginning'));
    const { service, reasons } = await started({ clock, webFiles });
    const launched = await launchSave(service, host.url, '/saved');
    await expectSoon(() => clock.nextMs).toBe(60_000);
    await clock.advance(60_000);
    expect(await endOfSave(service, launched)).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual(['its host was silent for 60000 ms']);
  });

  test('save_url gives a host 15 minutes for the whole answer', async () => {
    const clock = new ManualClock();
    let answering: ServerResponse | undefined;
    const host = await hostOn((_request, response) => {
      answering = response;
      response.flushHeaders();
    });
    const { service, reasons } = await started({ clock, webFiles });
    const launched = await launchSave(service, host.url, '/saved');
    await expectSoon(() => clock.nextMs).toBe(60_000);
    for (let leftMs = 900_000 - 59_000; leftMs > 0; leftMs -= 59_000) {
      await clock.advance(59_000);
      answering?.write('x');
      await expectSoon(() => clock.nextMs).toBe(Math.min(60_000, leftMs));
    }
    const { async_job_id } = launched.json as { async_job_id: string };
    expect((await rpc(service, 'files/save_url/check_job_status', { async_job_id })).json).toEqual({
      '.tag': 'in_progress',
    });
    await clock.advance(clock.nextMs ?? 0);
    expect(await endOfSave(service, launched)).toEqual(DOWNLOAD_FAILED);
    expect(reasons()).toEqual(['it took longer than 900000 ms']);
  });
});
