import { afterEach, beforeEach, expect, test } from 'vitest';
import { type EditedService, refusal, startEditedService } from '../support/edited-service.ts';
import { expectSoon } from '../support/eventually.ts';
import { Follower, parseReport, sendReport, shownTree } from '../support/follower.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

// The root folder of a drive (`--root`) is deleted and made again. The real service then refuses all older cursors.

const ROOT = '/Team/Projects';

let service: TestService;
let edited: EditedService;
let gateway: TestGateway;
let client: GatewayClient;
/** The cursors that the service has given out. */
let cursors: Set<string>;

beforeEach(async () => {
  service = await startTestService();
  await put(service, `${ROOT}/a.txt`, 'a');
  cursors = new Set();
  edited = await startEditedService(service.url);
  edited.edit = (_, answer) => {
    const [, cursor] = /"cursor":"([^"]+)"/.exec(answer.text) ?? [];
    if (cursor !== undefined) cursors.add(cursor);
    return answer;
  };
  gateway = await startTestGateway({
    service: { ...service, url: edited.url },
    root: ROOT,
    // Only the change feed brings news.
    staleMs: Number.MAX_SAFE_INTEGER,
  });
  client = new GatewayClient(gateway.url);
});
afterEach(async () => {
  client.close();
  await gateway.close();
  await edited.close();
  await service.close();
});

/** Refuses cursors that were given out before now, as a service does whose cursors belong to the folder. */
function endCursors(): void {
  const ended = new Set(cursors);
  edited.instead = ({ route, arg }) =>
    route === 'files/list_folder/continue' && ended.has((arg as { cursor: string }).cursor)
      ? refusal({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found')
      : undefined;
}

const shown = async () => [...(await shownTree(client, '/')).keys()];

test('a root folder that is deleted and made again is followed, and an older sync token is answered 403', async () => {
  await gateway.following();
  const { token } = await parseReport(await sendReport(client, '/', ''));
  expect(await shown()).toEqual(['/a.txt']);
  endCursors();
  await rpc(service, 'files/delete_v2', { path: ROOT });
  await put(service, `${ROOT}/b.txt`, 'b');
  const { status, body } = await sendReport(client, '/', token);
  expect([status, String(body)]).toEqual([403, expect.stringContaining('<D:valid-sync-token/>')]);
  await expectSoon(shown).toEqual(['/b.txt']);
  const follower = new Follower(client, '/');
  await follower.follow();
  expect([...follower.tree.keys()]).toEqual(['/b.txt']);
  await put(service, `${ROOT}/c.txt`, 'c');
  await expectSoon(shown).toEqual(['/b.txt', '/c.txt']);
});
