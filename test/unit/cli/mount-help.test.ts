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

test('Explorer’s hurdle of plain http is named for plain http alone', () => {
  expect(lineFor('Windows', 'http://127.0.0.1:8765/')).toContain('docs/mount/windows.md');
  expect(lineFor('Windows', 'https://127.0.0.1:8765/')).toBe(
    '  Windows  net use * https://127.0.0.1:8765/ /user:ann',
  );
  expect(lineFor('GNOME', 'https://127.0.0.1:8765/')).toContain('davs://127.0.0.1:8765/');
});

test('a name with a space is one word to each shell', () => {
  expect(lineFor('Windows', 'https://127.0.0.1:8765/', 'ann lee')).toContain('"/user:ann lee"');
  expect(lineFor('rclone', 'https://127.0.0.1:8765/', "ann o'lee")).toContain(
    `--webdav-user 'ann o'\\''lee'`,
  );
});

test('users of a configuration file are counted, and the mount commands ask for one of them', () => {
  const shown = help({ entry: { kind: 'table', users: 20, drives: 3, file: '/etc/davgate.json' } });
  expect(shown).toContain('davgate serves 3 drives at  http://127.0.0.1:8765/');
  expect(shown).toContain('login     as the 20 users of /etc/davgate.json');
  expect(shown).toContain("--webdav-user 'USER'");
  expect(shown).toContain('/user:USER');
  expect(shown).not.toContain('without a login');
});

test('"without a login" is said of a drive that is open, and of no other', () => {
  expect(help({ entry: { kind: 'open' } })).toContain('without a login');
  expect(help({ entry: { kind: 'open' } })).not.toMatch(/--webdav-user|\/user:/);
  expect(help({})).not.toContain('without a login');
});

test('a server on all addresses tells those that other machines can use', () => {
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

test('the names of a certificate are told where the address has none of them', () => {
  const file = join(import.meta.dirname, '../../support/certificates/one.pem');
  const names = namesOfCertificate(file, 'https://nowhere.example:8443/');
  expect(names.length).toBeGreaterThan(0);
  expect(namesOfCertificate(file, `https://${names[0]}/`)).toEqual([]);
  expect(help({ certificateNames: ['a.example'] })).toContain('the certificate is for a.example');
});
