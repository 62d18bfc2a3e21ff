import { expect, onTestFinished, test } from 'vitest';
import type { LogFields } from '../../src/util/log.ts';
import { silentLog } from '../../src/util/log.ts';
import { startMemoryBucket } from '../support/memory-bucket.ts';
import { startTestService } from '../support/service.ts';
import { download, put, rpc, send, sharedLink, upload } from '../support/service-client.ts';

test('while the bucket of the contents fails, uploads and downloads answer 503 with Retry-After, the log says why, and names can be read', async () => {
  const bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const errors: unknown[] = [];
  const log = { ...silentLog, error: (_: string, fields?: LogFields) => void errors.push(fields?.['error']) };
  const service = await startTestService({ blocks: bucket.access, log });
  onTestFinished(() => service.close());
  const content = 'a'.repeat(100_000);
  await put(service, '/a', content);

  bucket.fault = () => ({ status: 403, code: 'AccessDenied' });
  const answers = [
    await upload(service, 'files/upload', { path: '/b' }, { body: 'b'.repeat(100_000) }),
    await download(service, '/a'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([503, 503]);
  expect(answers.map(({ headers }) => headers.get('retry-after'))).toEqual(['5', '5']);
  expect(errors).toEqual([
    expect.stringContaining('403 AccessDenied: let this key put'),
    expect.stringContaining('403 AccessDenied: let this key put'),
  ]);
  bucket.fault = () => undefined;
  expect((await download(service, '/a')).text === content).toBe(true);
});

test('a temporary upload link whose upload the bucket of the contents refuses takes the file once the bucket works again', async () => {
  const bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const service = await startTestService({ blocks: bucket.access });
  onTestFinished(() => service.close());
  const { json } = await rpc(service, 'files/get_temporary_upload_link', { commit_info: { path: '/a' } });
  const { link } = json as { link: string };
  const content = 'a'.repeat(100_000);
  const headers = { 'content-type': 'application/octet-stream' };
  const post = async () => (await send(link, { method: 'POST', headers, body: content })).status;
  bucket.fault = () => ({ status: 403, code: 'AccessDenied' });
  expect([await post(), await post()]).toEqual([503, 503]);
  bucket.fault = () => undefined;
  expect([await post(), await post()]).toEqual([200, 410]);
  expect((await download(service, '/a')).text === content).toBe(true);
});

test('HEAD of a shared link answers the length and type without a request to the bucket of the contents', async () => {
  const bucket = await startMemoryBucket();
  onTestFinished(() => bucket.close());
  const service = await startTestService({ blocks: bucket.access });
  onTestFinished(() => service.close());
  await put(service, '/a.txt', 'a'.repeat(100_000));
  const link = (await sharedLink(service, '/a.txt')).replace('dl=0', 'raw=1');
  const requests = bucket.requests.length;
  const { status, headers } = await fetch(link, { method: 'HEAD' });
  expect([status, headers.get('content-length')]).toEqual([200, '100000']);
  expect(headers.get('content-type')).toMatch('text/plain');
  expect(bucket.requests.slice(requests)).toEqual([]);
  expect(await (await fetch(link)).text()).toBe('a'.repeat(100_000));
});
