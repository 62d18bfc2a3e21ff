import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectBadCall } from '../../support/bad-call.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { rpc, send, upload } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

describe('Dropbox-API-Arg', () => {
  const call = (header: string | undefined, query = '') =>
    send(`${service.url}/2/files/upload${query}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/octet-stream',
        ...(header !== undefined && { 'dropbox-api-arg': header }),
      },
      body: 'text',
    });

  test('Dropbox-API-Arg is read escaped, as raw UTF-8 and from the query', async () => {
    const name = 'Ünï \u{1f600}';
    const json = JSON.stringify({ path: `/args/${name}`, mode: 'overwrite' });
    const escaped = json.replaceAll(
      /[\u007f-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    const raw = Buffer.from(json).toString('latin1');
    for (const answered of [
      await call(escaped),
      await call(raw),
      await call(undefined, `?arg=${encodeURIComponent(json)}`),
    ])
      expect(answered.json ?? answered.text).toMatchObject({ name: name.normalize('NFC') });
  });

  test.each<[string | undefined, string, string]>([
    [undefined, '', 'Must provide HTTP header "Dropbox-API-Arg" or URL parameter "arg".'],
    ['{"path"', '', 'HTTP header "Dropbox-API-Arg": could not decode input as JSON'],
    ['{}', '', 'HTTP header "Dropbox-API-Arg": missing required field \'path\''],
    [undefined, '?arg={}', 'URL parameter "arg": missing required field \'path\''],
    [
      '{"path":"/x","mode":"update"}',
      '',
      'HTTP header "Dropbox-API-Arg": mode: expected object for \'update\', got symbol',
    ],
    [
      '{"path":"/x","mode":{".tag":"update"}}',
      '',
      'HTTP header "Dropbox-API-Arg": mode: missing required field \'update\'',
    ],
    [
      '{"path":"/x","client_modified":"2020-01-01T00:00:00.5Z"}',
      '',
      "HTTP header \"Dropbox-API-Arg\": client_modified: time data '2020-01-01T00:00:00.5Z' does not match format '%Y-%m-%dT%H:%M:%SZ'",
    ],
    [
      '{"path":"/x","content_hash":"12"}',
      '',
      'HTTP header "Dropbox-API-Arg": content_hash: must be at least 64 characters, got 2',
    ],
  ])('the argument %j with the query %j answers 400: %s', async (header, query, problem) => {
    expectBadCall(await call(header, query), `Error in call to API function "files/upload": ${problem}`);
  });

  test('a write mode in Dropbox-API-Arg may be a string or an object', async () => {
    for (const mode of ['add', 'overwrite', { '.tag': 'overwrite' }])
      expect((await call(JSON.stringify({ path: '/modes', mode }))).status).toBe(200);
  });

  test('Dropbox-API-Arg takes a path of 11,250 letters, escaped to more than 64 KiB', async () => {
    const path = `/${Array.from({ length: 45 }, () => 'ü'.repeat(250)).join('/')}`;
    const answered = await upload(service, 'files/upload', { path }, { body: 'text' });
    expect(answered.json).toMatchObject({ path_display: path });
    const read = await rpc(service, 'files/get_metadata', { path });
    expect(read.status).toBe(200);
  });
});
