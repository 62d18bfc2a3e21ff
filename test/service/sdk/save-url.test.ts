import type { Dropbox, files } from 'dropbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Networks } from '../../../src/util/networks.ts';
import { eventually } from '../../support/eventually.ts';
import { fileShape } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkRefusal, sdkRefused, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';
import { startWebHost, type WebHost } from '../../support/web-host.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;
let host: WebHost;

beforeAll(async () => {
  const webFiles = { allowedNetworks: new Networks(['127.0.0.1']) };
  ({ service, clients, sdk } = await startSdkService({ webFiles }));
  host = await startWebHost(({ url }, response) => {
    response.writeHead(url === '/text' ? 200 : 404).end('text');
  });
});
afterAll(async () => {
  await service.close();
  await host.close();
});

async function ended({ result }: { result: files.SaveUrlResult }): Promise<files.SaveUrlJobStatus> {
  if (result['.tag'] !== 'async_job_id') return result;
  const { async_job_id } = result;
  return await eventually(async () => {
    const { result: state } = await sdk.filesSaveUrlCheckJobStatus({ async_job_id });
    expect(state['.tag']).not.toBe('in_progress');
    return state;
  });
}

test('filesSaveUrl saves a URL and its job answers the metadata of the file', async () => {
  expect(await ended(await sdk.filesSaveUrl({ path: '/Saved/Text', url: `${host.url}/text` }))).toEqual({
    '.tag': 'complete',
    ...fileShape('/Saved/Text', 'Text'),
  });
});

test('filesSaveUrl of a URL that cannot be downloaded ends with download_failed', async () => {
  expect(await ended(await sdk.filesSaveUrl({ path: '/None', url: `${host.url}/none` }))).toEqual({
    '.tag': 'failed',
    failed: { '.tag': 'download_failed' },
  });
});

test('filesSaveUrl and filesSaveUrlCheckJobStatus refuse a malformed URL, path and job id', async () => {
  expect(await sdkRefusal(sdk.filesSaveUrl({ path: '/x', url: 'x' }))).toEqual(sdkRefused('invalid_url'));
  expect(await sdkRefusal(sdk.filesSaveUrl({ path: '/', url: host.url }))).toEqual(
    sdkRefused('path/malformed_path'),
  );
  expect(await sdkRefusal(sdk.filesSaveUrlCheckJobStatus({ async_job_id: 'x' }))).toEqual(
    sdkRefused('invalid_async_job_id'),
  );
});

test('the tests of save_url called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS['save-url'];
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
