import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type MountFacts, mountHelp } from '../../../src/cli/mount-help.ts';
import { namesOfCertificate, urlsForOthers } from '../../../src/cli/reachable.ts';

function help(facts: Partial<MountFacts>): string {
  return mountHelp({
    url: 'http://127.0.0.1:8765/',
    otherUrls: [],
    certificateNames: [],
    entry: { kind: 'user', name: 'ann', password: 'in /data/password' },
    ...facts,
  });
}

const lineFor = (system: string, url: string, name = 'ann') =>
  help({ url, entry: { kind: 'user', name, password: 'p' } })
    .split('\n')
    .find((line) => line.trim().startsWith(system));

test('the mount help points to the Windows page for plain http, and shows the command for https', () => {
  expect(lineFor('Windows', 'http://127.0.0.1:8765/')).toContain('docs/mount/windows.md');
  expect(lineFor('Windows', 'https://127.0.0.1:8765/')).toBe(
    '  Windows  net use * https://127.0.0.1:8765/ /user:ann',
  );
  expect(lineFor('GNOME', 'https://127.0.0.1:8765/')).toContain('davs://127.0.0.1:8765/');
});

test('the mount help quotes a user name with a space for each shell', () => {
  expect(lineFor('Windows', 'https://127.0.0.1:8765/', 'ann lee')).toContain('"/user:ann lee"');
  expect(lineFor('rclone', 'https://127.0.0.1:8765/', "ann o'lee")).toContain(
    `--webdav-user 'ann o'\\''lee'`,
  );
});

test('the mount help for a configuration file counts its users and shows a placeholder for the name', () => {
  const shown = help({ entry: { kind: 'table', users: 20, drives: 3, file: '/etc/davgate.json' } });
  expect(shown).toContain('davgate serves 3 drives at  http://127.0.0.1:8765/');
  expect(shown).toContain('login     as the 20 users of /etc/davgate.json');
  expect(shown).toContain("--webdav-user 'USER'");
  expect(shown).toContain('/user:USER');
  expect(shown).not.toContain('without a login');
});

test('the mount help says "without a login" for an open drive only', () => {
  expect(help({ entry: { kind: 'open' } })).toContain('without a login');
  expect(help({ entry: { kind: 'open' } })).not.toMatch(/--webdav-user|\/user:/);
  expect(help({})).not.toContain('without a login');
});

test('the mount help of a server on all addresses lists the URLs for other machines', () => {
  const row = { netmask: '', mac: '', cidr: null };
  const interfaces = {
    lo: [{ ...row, address: '127.0.0.1', family: 'IPv4' as const, internal: true }],
    eth0: [{ ...row, address: '192.0.2.7', family: 'IPv4' as const, internal: false }],
  };
  const urls = urlsForOthers('0.0.0.0', 'https://localhost:8443/', interfaces);
  expect(urls).toEqual(['https://192.0.2.7:8443/']);
  expect(urlsForOthers('127.0.0.1', 'http://127.0.0.1:8765/', interfaces)).toEqual([]);
  expect(help({ otherUrls: urls })).toContain('  also at   https://192.0.2.7:8443/\n');
});

test("the mount help names the certificate's names when the URL has none of them", () => {
  const file = join(import.meta.dirname, '../../support/certificates/one.pem');
  const names = namesOfCertificate(file, 'https://nowhere.example:8443/');
  expect(names.length).toBeGreaterThan(0);
  expect(namesOfCertificate(file, `https://${names[0]}/`)).toEqual([]);
  expect(help({ certificateNames: ['a.example'] })).toContain('the certificate is for a.example');
});
