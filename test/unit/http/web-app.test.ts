import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openWebApp } from '../../../src/http/web-app.ts';
import { listening } from '../../support/listening.ts';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'davgate-app-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('the application is served whole after another build has replaced its files', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'index.html'), '<p>page</p>');
  writeFileSync(join(folder, 'app-1.js'), 'run();');
  const app = openWebApp(folder);
  rmSync(folder, { recursive: true });
  const { url } = await listening({ ...(app && { openRoute: app.serve }) });
  const plain = await fetch(new URL('/.davgate/app/app-1.js', url), {
    headers: { 'accept-encoding': 'identity' },
  });
  expect([plain.status, plain.headers.get('content-encoding'), await plain.text()]).toEqual([
    200,
    null,
    'run();',
  ]);
  for (const coding of ['gzip', 'br']) {
    const headers = { 'accept-encoding': coding };
    const compressed = await fetch(new URL('/.davgate/app/app-1.js', url), { headers });
    expect([compressed.headers.get('content-encoding'), await compressed.text()]).toEqual([coding, 'run();']);
  }
  expect(String(app?.page('').body)).toBe('<p>page</p>');
});

test('a file of an earlier build is answered 404, which says to load the page again', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'index.html'), '');
  const app = openWebApp(folder);
  const { url } = await listening({ ...(app && { openRoute: app.serve }) });
  const answer = await fetch(new URL('/.davgate/app/app-0.js', url));
  expect([answer.status, await answer.text()]).toEqual([
    404,
    'davgate has been updated; load the page again.\n',
  ]);
});

test('without a built application there is none', () => {
  expect(openWebApp(join(temporaryFolder(), 'missing'))).toBeUndefined();
});

test('the page contains its base path, escaped, and has a different entity tag for each base path', () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'index.html'), '<html data-base="{{base}}"><script src="{{base}}/app.js">');
  const app = openWebApp(folder);
  expect(String(app?.page('').body)).toBe('<html data-base=""><script src="/app.js">');
  expect(String(app?.page("/a&b'$&").body)).toBe(
    '<html data-base="/a&amp;b&#39;$&amp;"><script src="/a&amp;b&#39;$&amp;/app.js">',
  );
  expect(app?.page('/a').headers['ETag']).not.toBe(app?.page('').headers['ETag']);
});
