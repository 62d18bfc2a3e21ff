import { afterEach, beforeEach, expect, test } from 'vitest';
import { driveUser } from '../support/drive-user.ts';
import { parseReport, sendReport, shownTree } from '../support/follower.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { connectRaw } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/service.ts';

// REPORT sync-collection and the property sync-token while a PUT is running.

let service: TestService;
let gated: GatedService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gated = await startGatedService(service.url);
  gateway = await startTestGateway({ service: { ...service, url: gated.url } });
  client = new GatewayClient(gateway.url);
  await folder('/docs');
  await put('/docs/a.txt', 'a');
});
afterEach(async () => {
  client.close();
  await gateway.close();
  await gated.end();
  await service.close();
});

const { send, put, folder } = driveUser(() => client);

const report = async (token = '') => parseReport(await sendReport(client, '/docs', token));

const hrefs = ({ rows }: Awaited<ReturnType<typeof report>>) => rows.map(([href]) => href);

const askToken = async () => {
  const body = '<D:propfind xmlns:D="DAV:"><D:prop><D:sync-token/></D:prop></D:propfind>';
  return (await send('PROPFIND', '/docs', { headers: { depth: '0' }, body })).text;
};

test('REPORT and PROPFIND of sync-token do not wait for a PUT whose body is still coming', async () => {
  const { token } = await report();
  const upload = connectRaw(
    Number(new URL(gateway.url).port),
    'PUT /docs/a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n',
  );
  try {
    // davgate sends it when it wants the body, after the upload has begun.
    await upload.until('100 Continue');
    upload.send('x');
    await put('/docs/b.txt', 'b');
    const next = await report(token);
    expect(hrefs(next)).toEqual(['/docs/b.txt']);
    expect(await askToken()).toContain('<D:sync-token>');
    upload.send('12345678');
    await upload.until('204 No Content');
    expect(hrefs(await report(next.token))).toEqual(['/docs/a.txt']);
  } finally {
    upload.socket.destroy();
  }
});

test('REPORT and PROPFIND of sync-token wait for a PUT that the service has committed and not answered', async () => {
  const { token } = await report();
  const gate = gated.closeBehind('upload');
  const written = put('/docs/a.txt', 'changed');
  await gate.reached;
  let answered = 0;
  const count = <T>(answer: T) => {
    answered += 1;
    return answer;
  };
  const reported = report(token).then(count);
  const asked = askToken().then(count);
  // Both have begun when another request has been answered that came later.
  await folder('/elsewhere', '/elsewhere/deep');
  const answeredEarly = answered;
  gate.open();
  await written;
  expect(answeredEarly).toBe(0);
  expect(await asked).toContain('<D:sync-token>');
  expect((await reported).rows).toEqual([...(await shownTree(client, '/docs'))]);
});
