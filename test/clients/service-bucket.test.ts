import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type MemoryBucket, startMemoryBucket } from '../support/memory-bucket.ts';
import { matchOutput, runProgram, spawnProgram, temporaryDirectory } from '../support/program.ts';

const TEMPORARY_KEYS = { accessKeyId: 'key', secretAccessKey: 'secret', sessionToken: 'token' };

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let bucket: MemoryBucket;

beforeEach(async () => {
  [data, bucket] = await Promise.all([temporaryDirectory(), startMemoryBucket(TEMPORARY_KEYS)]);
});
afterEach(async () => {
  await bucket.close();
  await data.remove();
});

const addressOf = ({ access: { address } }: MemoryBucket) =>
  `s3://${address.bucket}/${encodeURIComponent(address.prefix.slice(0, -1))}?endpoint=${address.endpoint}`;

/** Calls a function that carries the bytes of the file `/large`. */
function call(
  { url, token }: { url: string; token: string },
  name: string,
  body?: Buffer,
): Promise<Response> {
  const headers = {
    authorization: `Bearer ${token}`,
    'dropbox-api-arg': JSON.stringify({ path: '/large' }),
    ...(body && { 'content-type': 'application/octet-stream' }),
  };
  return fetch(`${url}/2/files/${name}`, { method: 'POST', headers, ...(body && { body }) });
}

const environment = () => ({
  ...process.env,
  AWS_ACCESS_KEY_ID: TEMPORARY_KEYS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: TEMPORARY_KEYS.secretAccessKey,
  AWS_SESSION_TOKEN: TEMPORARY_KEYS.sessionToken,
});

test('davgate service --blocks keeps contents in the bucket across a kill, and service check reads them there', async () => {
  const content = randomBytes(5_000_000);
  const words = ['--data', join(data.path, 'data'), '--blocks', addressOf(bucket)];
  const start = async () => {
    const { child, output } = spawnProgram(
      ['service', '--listen', '127.0.0.1:0', '--json', ...words],
      environment(),
    );
    await matchOutput(child, output, /"refreshToken":"[^"]+".*\}/);
    const said = JSON.parse(output().slice(output().indexOf('{'))) as { url: string; token: string };
    const kill = () => new Promise((resolve) => child.once('close', resolve) && child.kill('SIGKILL'));
    return { ...said, kill };
  };
  const first = await start();
  expect((await call(first, 'upload', content)).status).toBe(200);
  await first.kill();
  const second = await start();
  expect(content.equals(Buffer.from(await (await call(second, 'download')).arrayBuffer()))).toBe(true);
  await second.kill();

  const check = await runProgram(['service', 'check', ...words], environment());
  expect(check.output).toContain('No damage');
  // A bucket that cannot be read is no damage.
  const refused = await runProgram(['service', 'check', ...words], {
    ...environment(),
    AWS_SECRET_ACCESS_KEY: 'no',
  });
  expect([refused.code, refused.output]).toEqual([2, expect.stringContaining('check AWS_SECRET_ACCESS_KEY')]);
  expect(refused.output).not.toContain('Damage');
  for (const [key, bytes] of bucket.objects) if (bytes.length > 65_536) bucket.objects.delete(key);
  const damaged = await runProgram(['service', 'check', ...words], environment());
  expect([damaged.code, damaged.output]).toEqual([1, expect.stringContaining('/large')]);
});

test.each([
  [
    'an address that is none',
    'drive',
    {},
    '--blocks: "drive" is not the address of a bucket; write for example s3://',
  ],
  ['a key in the address', 's3://key:secret@drive', {}, '--blocks: a key does not belong in the address'],
  ['an unknown part', 's3://drive?zone=a', {}, 'has an unknown part "zone"'],
  [
    'no login',
    's3://drive',
    { AWS_ACCESS_KEY_ID: '' },
    '--blocks: a bucket needs a login; set AWS_ACCESS_KEY_ID',
  ],
])(
  'davgate service --blocks with %s ends with exit code 2 and says what to do',
  async (_, blocks, variables, said) => {
    const words = [
      'service',
      '--listen',
      '127.0.0.1:0',
      '--data',
      join(data.path, 'data'),
      '--blocks',
      blocks,
    ];
    const { code, output } = await runProgram(words, { ...environment(), ...variables });
    expect([code, output]).toEqual([2, expect.stringContaining(said)]);
    expect(output).not.toContain('secret@');
  },
);

test('davgate service --blocks with a wrong secret ends with exit code 2 and says which variable to check', async () => {
  const words = ['service', '--listen', '127.0.0.1:0', '--data', join(data.path, 'data')];
  const wrong = { ...environment(), AWS_SECRET_ACCESS_KEY: 'no' };
  const { code, output } = await runProgram([...words, '--blocks', addressOf(bucket)], wrong);
  expect([code, output]).toEqual([2, expect.stringContaining('check AWS_SECRET_ACCESS_KEY')]);
});
