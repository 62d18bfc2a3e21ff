import { expect, onTestFinished, test } from 'vitest';
import type { LogFields } from '../../src/util/log.ts';
import { silentLog } from '../../src/util/log.ts';
import { startMemoryBucket } from '../support/memory-bucket.ts';
import { startTestService } from '../support/service.ts';
import { download, put, upload } from '../support/service-client.ts';

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
