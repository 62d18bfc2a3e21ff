import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { examine } from '../../src/cli/doctor/doctor.ts';
import type { Config } from '../../src/config/configuration.ts';
import type { Credentials, DriveConfig } from '../../src/config/drive-config.ts';
import { SCOPES, type Scope } from '../../src/service/accounts/scopes.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import { type Clock, instantIn, systemClock } from '../../src/util/clock.ts';
import { Networks } from '../../src/util/networks.ts';
import { freePort } from '../support/free-port.ts';
import { lose, ScriptedService } from '../support/scripted-service.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

let directory: string;
/** One service for all tests. Each test has an account of its own in it. */
let service: TestService;
let accountId: string;
/** Access token of the test's account, with all scopes. */
let token: string;
let accounts = 0;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-doctor-'));
  const email = `account-${++accounts}@example.org`;
  const account = { email, givenName: 'A', surname: 'B', mayDeletePermanently: true };
  accountId = (await service.service.addAccount(account)).id;
  token = await tokenWithout();
});
afterEach(async () => {
  service.service.setFaults({});
  await rm(directory, { recursive: true, force: true });
});

/** Returns a clock that skips sleeps of less than 10 s, the waits between retries, but not the time limits of calls. */
function fastClock(): Clock {
  let skippedMs = 0;
  return {
    now: () => systemClock.now() + skippedMs,
    instant: () => instantIn(systemClock, skippedMs),
    async sleep(ms, signal) {
      if (ms >= 10_000) return systemClock.sleep(ms, signal);
      skippedMs += ms;
      await systemClock.sleep(0, signal);
    },
  };
}

function configOf(
  credentials: Credentials,
  drive: Partial<DriveConfig> = {},
  more: Partial<Config> = {},
): Config {
  const addresses = { apiUrl: service.url, contentUrl: service.url, notifyUrl: service.url };
  return {
    listen: { host: '127.0.0.1', port: 0 },
    log: { level: 'info', format: 'text' },
    logRequests: true,
    crossOrigins: [],
    trustedProxies: new Networks(),
    basePath: '',
    tls: undefined,
    publicUrl: undefined,
    dataDirectory: join(directory, 'data'),
    cacheDirectory: join(directory, 'cache'),
    redisUrl: undefined,
    writeMode: 'through',
    drives: [
      { name: 'default', service: { ...addresses, credentials }, root: '', deletePolicy: 'auto', ...drive },
    ],
    users: undefined,
    ...more,
  };
}

interface Report {
  readonly isWell: boolean;
  readonly lines: readonly string[];
  /** Returns the line of one check, with its level. */
  line(about: string): string | undefined;
}

async function runDoctor(config: Config, clock: Clock = systemClock, signal?: AbortSignal): Promise<Report> {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const needs = { print, clock, nodeVersion: 'v24.1.0', signal: signal ?? new AbortController().signal };
  const isWell = await examine(config, needs);
  return { isWell, lines, line: (about) => lines.find((line) => line.slice(6).startsWith(about)) };
}

const withToken = () => configOf({ token });

/** Returns the paths and revisions of everything in an account, and its shared links. */
async function accountState(ofToken = token): Promise<unknown> {
  const listed = await rpc(service, 'files/list_folder', { path: '', recursive: true }, { token: ofToken });
  const links = await rpc(service, 'sharing/list_shared_links', {}, { token: ofToken });
  const { entries } = listed.json as { entries: { path_display: string; rev?: string }[] };
  return [entries.map(({ path_display, rev }) => `${path_display} ${rev}`), links.json];
}

/** Returns a token of the test's account with all scopes but the given ones. */
async function tokenWithout(...missing: Scope[]): Promise<string> {
  return await service.service.grant({
    accountId,
    scopes: SCOPES.filter((scope) => !missing.includes(scope)),
  });
}

describe('doctor on a healthy account', () => {
  test('doctor reports ok for every check of a good refresh token, and leaves the account as it was', async () => {
    await put(service, '/mine/kept', 'mine');
    const before = await accountState(service.token);
    const { appKey, appSecret, refreshToken } = service;
    const { isWell, lines, line } = await runDoctor(configOf({ appKey, appSecret, refreshToken }));
    expect(lines.filter((one) => !one.startsWith('ok '))).toEqual([
      `${lines.length - 1} ok, 0 warnings, 0 failures`,
    ]);
    expect(isWell).toBe(true);
    expect(line('node')).toContain('v24.1.0 gets fixes');
    expect(line('login')).toContain('the refresh token works');
    expect(line('permanent delete')).toContain('is allowed');
    expect(line('upload session')).toContain('4194305 bytes came back as they were sent');
    expect(await accountState(service.token)).toEqual(before);
    for (const secret of [refreshToken, appSecret, service.token])
      expect(lines.join('\n')).not.toContain(secret);
  });

  test('doctor passes a drive whose root is a folder of the account', async () => {
    await rpc(service, 'files/create_folder_v2', { path: '/Team' }, { token });
    const { lines } = await runDoctor(configOf({ token }, { root: '/Team' }));
    expect(lines.at(-1)).toMatch(/0 warnings, 0 failures$/);
  });
});

describe('doctor on a login or an account with a defect', () => {
  test('doctor fails a root that does not exist, names --root, and does not try to make a folder', async () => {
    const { isWell, line } = await runDoctor(configOf({ token }, { root: '/Nowhere' }));
    expect([isWell, line('listing')]).toEqual([
      false,
      expect.stringMatching(/^FAIL .*not_found.*no folder \/Nowhere: correct --root/),
    ]);
    expect(line('folder')).toBeUndefined();
  });

  test('doctor fails an invalid token, says how to replace it, and does not print it', async () => {
    const { isWell, line, lines } = await runDoctor(configOf({ token: 'sl.WRONG-TOKEN' }));
    expect(isWell).toBe(false);
    expect(line('account')).toMatch(
      /^FAIL .*; give a new access token \(DAVGATE_TOKEN\), or run davgate login/,
    );
    expect(lines.join('\n')).not.toContain('WRONG-TOKEN');
  });

  test('doctor fails a token with characters that no token has, and does not print it', async () => {
    const { isWell, line, lines } = await runDoctor(configOf({ token: 'two words' }));
    expect([isWell, line('login')]).toEqual([
      false,
      expect.stringMatching(/^FAIL .*contains characters that no token has/),
    ]);
    expect(lines.join('\n')).not.toContain('two words');
  });

  test('doctor fails a revoked refresh token, and does not print it', async () => {
    const { isWell, line } = await runDoctor(configOf({ appKey: service.appKey, refreshToken: 'REVOKED' }));
    expect([isWell, line('account')]).toEqual([false, expect.stringMatching(/^FAIL .*invalid_/)]);
    expect(line('account')).not.toContain('REVOKED');
  });

  test('doctor fails a wrong app key and names the settings to check', async () => {
    const { refreshToken } = service;
    const { isWell, line } = await runDoctor(configOf({ appKey: 'wrong', refreshToken }));
    expect([isWell, line('account')]).toEqual([
      false,
      expect.stringMatching(/^FAIL .*invalid_client.*; check DAVGATE_APP_KEY and DAVGATE_APP_SECRET$/),
    ]);
  });

  test.each([
    ['files.metadata.read', 'listing'],
    ['files.content.write', 'folder'],
    ['files.content.read', 'download'],
  ] as const)(
    'doctor fails a token without the scope %s in the check of the %s, and leaves nothing behind',
    async (scope, about) => {
      const { isWell, line } = await runDoctor(configOf({ token: await tokenWithout(scope) }));
      expect(isWell).toBe(false);
      expect(line(about)).toMatch(/^FAIL /);
      expect(line(about)).toContain(`choose the scope ${scope} for the app`);
      expect(await accountState()).toEqual([[], expect.objectContaining({ links: [] })]);
    },
  );

  test.each([
    ['account_info.read', 'account'],
    ['sharing.read', 'shared links'],
    ['sharing.write', 'shared links'],
  ] as const)(
    'doctor warns of a token without the scope %s in the check of the %s, and leaves nothing behind',
    async (scope, about) => {
      const { isWell, line } = await runDoctor(configOf({ token: await tokenWithout(scope) }));
      expect(isWell).toBe(true);
      expect(line(about)).toMatch(/^warn /);
      expect(line(about)).toContain(`choose the scope ${scope} for the app`);
      expect(await accountState()).toEqual([[], expect.objectContaining({ links: [] })]);
    },
  );

  test.each([
    ['auto', true, /^warn .*DELETE moves to the trash of the service/],
    ['permanent', false, /^FAIL .*every DELETE will fail; use --delete auto/],
    ['trash', true, /^ok .*not used/],
  ] as const)(
    'doctor with --delete %s and permanent delete forbidden to the token returns %s',
    async (deletePolicy, passes, expectedLine) => {
      const limited = await tokenWithout('files.permanent_delete');
      const { isWell, line } = await runDoctor(configOf({ token: limited }, { deletePolicy }));
      expect([isWell, line('permanent delete')]).toEqual([passes, expect.stringMatching(expectedLine)]);
      expect(await accountState()).toEqual([[], expect.objectContaining({ links: [] })]);
    },
  );
});

describe('doctor on a faulty service or connection', () => {
  test('doctor fails an address where nothing listens, and says what to check', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const addresses = { apiUrl: url, contentUrl: url, notifyUrl: url };
    const unreachable = { ...addresses, credentials: { token: 't' } };
    const { isWell, line } = await runDoctor(configOf({ token: 't' }, { service: unreachable }), fastClock());
    expect(isWell).toBe(false);
    expect(line('account')).toMatch(
      /^FAIL .*ECONNREFUSED.*; check the address, this machine’s network and its proxy$/,
    );
  });

  test('doctor fails an https address whose port speaks http, and says so', async () => {
    const apiUrl = service.url.replace('http:', 'https:');
    const secure = { apiUrl, contentUrl: apiUrl, notifyUrl: apiUrl, credentials: { token: 't' } };
    const { isWell, line } = await runDoctor(configOf({ token: 't' }, { service: secure }), fastClock());
    expect([isWell, line('account')]).toEqual([
      false,
      expect.stringMatching(/^FAIL .*; the port does not use TLS: write http:\/\/ in the address/),
    ]);
  });

  test('doctor fails long polls that are cut off, and still checks the rest', async () => {
    const scripted = await ScriptedService.start();
    scripted.on('files/list_folder/longpoll', lose);
    const { url } = service;
    const addresses = { apiUrl: url, contentUrl: url, notifyUrl: scripted.url };
    const withoutPolls = { ...addresses, credentials: { token } };
    const { isWell, line } = await runDoctor(configOf({ token: '' }, { service: withoutPolls }), fastClock());
    await scripted.close();
    expect([isWell, line('change feed')]).toEqual([
      false,
      expect.stringMatching(/^FAIL .*longpoll.*cannot reach/),
    ]);
    expect(line('download')).toMatch(/^ok /);
  });

  test('doctor fails a download whose bytes differ from the upload, and leaves nothing behind', async () => {
    service.service.setFaults({ 'corrupt-share': 1 });
    const { isWell, line } = await runDoctor(withToken());
    expect([isWell, line('download')]).toEqual([
      false,
      expect.stringMatching(/^FAIL .*65536 bytes came back changed/),
    ]);
    service.service.setFaults({});
    expect(await accountState()).toEqual([[], expect.anything()]);
  });

  test('doctor warns of calls that the service refused with its rate limit', async () => {
    service.service.setFaults({ 'rate-per-second': 1, 'rate-burst': 1 });
    const { line } = await runDoctor(withToken(), fastClock());
    expect(line('rate')).toMatch(/^warn .*limited the rate of calls \d+ times/);
  });

  test('doctor warns of a clock that is ten minutes behind the service', async () => {
    const late: Clock = { ...systemClock, now: () => systemClock.now() - 10 * 60_000 };
    const { isWell, line } = await runDoctor(withToken(), late);
    // The service's clock is a header in whole seconds.
    expect([isWell, line('clock')]).toEqual([
      true,
      expect.stringMatching(/^warn .*(599|60\d) s behind the service’s: set it/),
    ]);
  });
});

describe('doctor stopped before its end', () => {
  test('doctor stopped in the middle fails, removes its folder and says that not all checks were run', async () => {
    const stop = new AbortController();
    const lines: string[] = [];
    const print = (line: string) => {
      lines.push(line);
      if (line.includes('upload session')) stop.abort(new Error('stopped'));
    };
    const isWell = await examine(withToken(), {
      print,
      clock: systemClock,
      nodeVersion: 'v24.1.0',
      signal: stop.signal,
    });
    expect(isWell).toBe(false);
    expect(lines.slice(-4)).toEqual([
      expect.stringMatching(/^ok +cleanup +removed /),
      expect.stringMatching(/^ok +rate/),
      expect.stringMatching(/^FAIL +stopped +not all checks were run/),
      expect.stringMatching(/1 failures$/),
    ]);
    expect(await accountState()).toEqual([[], expect.anything()]);
  });
});

describe('doctor on the local machine', () => {
  const localOnly = (more: Partial<Config>) => configOf({ token: 'two words' }, {}, more);

  test('doctor fails data and cache directories that cannot be created, and names the options', async () => {
    await writeFile(join(directory, 'file'), '');
    const { line } = await runDoctor(
      localOnly({ dataDirectory: join(directory, 'file', 'x'), cacheDirectory: join(directory, 'file') }),
    );
    expect(line('data directory')).toMatch(/^FAIL .*part of the path is a file, or use --data-dir$/);
    expect(line('cache')).toMatch(/^FAIL .*or use --cache-dir$/);
  });

  test('doctor accepts state that a running davgate has open, and fails state that is damaged', async () => {
    const state = join(directory, 'data', 'state');
    const running = openSqliteState({ directory: state });
    expect((await runDoctor(localOnly({}))).line('state')).toMatch(/^ok .*a davgate is running with/);
    await running.close();
    expect((await runDoctor(localOnly({}))).line('state')).toMatch(/^ok .*can be opened/);
    await writeFile(join(state, 'state.db'), 'no database '.repeat(1000));
    expect((await runDoctor(localOnly({}))).line('state')).toMatch(/^FAIL .*not a database of davgate/);
  });

  test('doctor fails a port that another program uses, and accepts one that a davgate uses', async () => {
    const taken = async (handle: RequestListener) => {
      const server = createServer(handle).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const { line } = await runDoctor(localOnly({ listen: { host: '127.0.0.1', port } }));
      server.close();
      return line('listener');
    };
    const other = await taken((_request, response) => void response.end('another program'));
    expect(other).toMatch(/^FAIL .*another program uses that port/);
    const davgate = await taken((_request, response) => void response.end('{"status":"ok"}'));
    expect(davgate).toMatch(/^ok .*in use by a davgate that is running/);
  });

  test('doctor warns of writes in lost and found, and counts them', async () => {
    const lost = join(directory, 'data', 'lost-and-found', 'default');
    await mkdir(lost, { recursive: true });
    for (const name of ['a', 'a.reason.txt']) await writeFile(join(lost, name), '');
    expect((await runDoctor(localOnly({}))).line('lost and found')).toMatch(
      /^warn .*1 writes that the service refused/,
    );
  });

  test('doctor warns of a listener that sends passwords in clear across the network', async () => {
    const { line } = await runDoctor(localOnly({ listen: { host: '0.0.0.0', port: 0 } }));
    expect(line('listener')).toMatch(/^warn .*cross the network unencrypted/);
  });

  test('doctor accepts a certificate that fits its key, and fails one that does not fit or is out of date', async () => {
    const pem = (name: string) => join(import.meta.dirname, '..', 'support', 'certificates', name);
    const tls = { certFile: pem('one.pem'), keyFile: pem('one.key'), hasHttp2: true };
    expect((await runDoctor(localOnly({ tls }))).line('certificate')).toMatch(/^ok .*matches its key/);
    const other = { ...tls, keyFile: pem('other.key') };
    expect((await runDoctor(localOnly({ tls: other }))).line('certificate')).toMatch(
      /^FAIL .*cannot serve https/,
    );
    const inCenturies: Clock = { ...systemClock, now: () => Date.UTC(2500, 0) };
    expect((await runDoctor(localOnly({ tls }), inCenturies)).line('certificate')).toMatch(
      /^FAIL .*has expired/,
    );
    const longAgo: Clock = { ...systemClock, now: () => Date.UTC(1999, 0) };
    expect((await runDoctor(localOnly({ tls }), longAgo)).line('certificate')).toMatch(
      /^FAIL .*is not valid before/,
    );
  });

  test('doctor warns of a login file that other users may read', async () => {
    await runDoctor(localOnly({}));
    await writeFile(join(directory, 'data', 'login.json'), '{}', { mode: 0o644 });
    expect((await runDoctor(localOnly({}))).line('login file')).toMatch(/^warn .*chmod 600/);
  });
});
