import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FileEntry } from '../../../src/api/remote.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { type Answer, refuse, text } from '../../support/scripted-service.ts';

const ROUTE = 'files/get_thumbnail_v2';

const file: FileEntry = {
  kind: 'file',
  id: 'id:1',
  path: at('/a.jpg'),
  name: 'a.jpg',
  rev: '0123456789abc',
  sizeBytes: 5_000_000,
  modifiedMs: 0,
  committedMs: 0,
};

const RESULT = { 'dropbox-api-result': '{"file_metadata":{}}' };

const image =
  (bytes: Buffer): Answer =>
  (response) =>
    void response.writeHead(200, { ...RESULT, 'content-length': bytes.length }).end(bytes);

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

test('a thumbnail is asked for by revision, as WebP of at most 256 by 256 pixels', async () => {
  const { service, remote } = scripted;
  service.on(ROUTE, image(Buffer.from('image')));
  expect(Buffer.from(await remote.thumbnail(file)).toString()).toBe('image');
  expect(service.calls[0]?.arg).toEqual({
    resource: { '.tag': 'path', path: 'rev:0123456789abc' },
    format: { '.tag': 'webp' },
    size: { '.tag': 'w256h256' },
    mode: { '.tag': 'bestfit' },
  });
});

test.each([
  ['unsupported_extension', {}, 'no-thumbnail'],
  ['unsupported_image', {}, 'no-thumbnail'],
  ['encrypted_content', {}, 'no-thumbnail'],
  ['conversion_error', {}, 'no-thumbnail'],
  ['path', { path: { '.tag': 'not_found' } }, 'not-found'],
])('a thumbnail refused with %s %o fails with the right failure', async (tag, more, failure) => {
  scripted.service.on(ROUTE, refuse({ '.tag': tag, ...more }, tag));
  await expect(scripted.remote.thumbnail(file)).rejects.toMatchObject({ failure });
});

test('a thumbnail whose connection is lost in the middle fails with offline', async () => {
  scripted.service.on(ROUTE, (response) => {
    response.writeHead(200, { ...RESULT, 'content-length': 1000 });
    response.write(Buffer.alloc(10), () => response.destroy());
  });
  await expect(scripted.remote.thumbnail(file)).rejects.toMatchObject({ failure: 'offline' });
});

test('an answer that is too long for a thumbnail is refused, and its rest is not read', async () => {
  scripted.service.on(ROUTE, image(Buffer.alloc(4 * 1024 * 1024)));
  await expect(scripted.remote.thumbnail(file)).rejects.toMatchObject({ failure: 'no-thumbnail' });
});

test("a proxy's page with status 200 is not taken for a thumbnail, and fails with unavailable", async () => {
  await scripted.close();
  scripted = await openScripted({ random: () => 0.9 });
  const { service, remote, clock } = scripted;
  service.on(ROUTE, text(200, '<html>log in</html>'));
  await expect(clock.during(remote.thumbnail(file))).rejects.toMatchObject({ failure: 'unavailable' });
  service.on(ROUTE, text(200, '<html>log in</html>'), image(Buffer.from('image')));
  expect(Buffer.from(await clock.during(remote.thumbnail(file))).toString()).toBe('image');
});
