import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../../src/app/gateway.ts';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { silentLog } from '../../src/util/log.ts';
import { Networks } from '../../src/util/networks.ts';
import { eventually } from '../support/eventually.ts';
import { parseExposition } from '../support/exposition.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

const IDLE = { status: 'ok', heldFiles: 0, journalFiles: 0, journalBytes: 0, lostFiles: 0 };

let directory: string;
let service: TestService;
let gateway: Gateway;

/** Returns a token with all scopes except `files.content.write`. */
async function readOnlyToken(): Promise<string> {
  const { json } = await rpc(service, 'users/get_current_account', null);
  const { account_id: accountId } = json as { account_id: string };
  return service.service.grant({
    accountId,
    scopes: SCOPES.filter((scope) => scope !== 'files.content.write'),
  });
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-journal-trouble-'));
  service = await startTestService();
  const { url } = service;
  const addresses = { apiUrl: url, contentUrl: url, notifyUrl: url };
  gateway = await startGateway(
    {
      listen: { host: '127.0.0.1', port: 0 },
      tls: undefined,
      publicUrl: undefined,
      trustedProxies: new Networks(),
      log: { level: 'info', format: 'text' },
      logRequests: true,
      basePath: '',
      crossOrigins: [],
      dataDirectory: join(directory, 'data'),
      cacheDirectory: join(directory, 'cache'),
      writeMode: 'back',
      redisUrl: undefined,
      drives: [
        {
          name: 'narrow',
          service: { ...addresses, credentials: { token: await readOnlyToken() } },
          root: '',
          deletePolicy: 'auto',
        },
      ],
      users: undefined,
    },
    silentLog,
  );
});
afterEach(async () => {
  await gateway.close();
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

const read = async (name: string) => (await fetch(`${gateway.url}.davgate/${name}`)).text();
const health = async () => JSON.parse(await read('healthz'));
const series = async () => parseExposition(await read('metrics')).series('davgate_journal_trouble');

test('healthz and metrics name the reason why an acknowledged write stays in the journal, until its file is deleted', async () => {
  expect([await health(), await series()]).toEqual([IDLE, []]);
  const { status } = await fetch(`${gateway.url}plan.odt`, { method: 'PUT', body: 'text' });
  expect(status).toBe(201);
  const stuck = { ...IDLE, journalFiles: 1, journalBytes: 4, journalTrouble: 'not-entitled' };
  await eventually(async () => expect(await health()).toEqual(stuck));
  expect(await series()).toEqual(['davgate_journal_trouble{drive="narrow",reason="not-entitled"}']);
  expect((await fetch(`${gateway.url}plan.odt`, { method: 'DELETE' })).status).toBe(204);
  expect([await health(), await series()]).toEqual([IDLE, []]);
});
