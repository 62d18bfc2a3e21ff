import { expect, test } from 'vitest';
import { clientOf } from '../../../src/dav/clients.ts';

const named = (agent: string | undefined) =>
  clientOf({ headers: agent === undefined ? {} : { 'user-agent': agent } });

test.each([
  ['WebDAVFS/1.5 (01508000) Darwin/9.2.2 (i386)', 'Finder'],
  ['WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)', 'Finder'],
  ['WebDAVFS/3.0.0 (03008000) Darwin/24.3.0 (arm64)', 'Finder'],
  ['WebDAVFS/3.0.0 (03008000) Darwin/24.4.0 (arm64)', 'Finder since macOS 15.4'],
  ['WebDAVFS/3.0.0 (03008000) Darwin/24.10.0 (arm64)', 'Finder since macOS 15.4'],
  ['WebDAVLib/1.3 Darwin/25.0.0', 'Finder since macOS 15.4'],
  ['Transmit/5.10 WebDAVFS/3.0 neon/0.30', 'Transmit'],
  ['Microsoft-WebDAV-MiniRedir/10.0.19045', 'Windows Mini-Redirector'],
  ['DavClnt', 'Windows Mini-Redirector'],
  ['Microsoft Office Word 2014 (16.0.5083) Windows NT 10.0', 'Microsoft Office'],
  ['davfs2/1.7.0 neon/0.33.0', 'davfs2'],
  ['rclone/v1.68.2', 'rclone'],
  ['cadaver/0.24 neon/0.33.0', 'other'],
  ['', 'other'],
  [undefined, 'other'],
])('the User-Agent %j is recognized as %s', (agent, name) => {
  expect(named(agent).name).toBe(name);
});

test('Finder gets no quota properties since macOS 15.4, and 423 instead of a 5xx', () => {
  const newer = named('WebDAVFS/3.0.0 (03008000) Darwin/24.4.0 (arm64)');
  expect(newer).toMatchObject({ reportsQuota: false, statusWhenBusy: 423, createsEmptyFirst: true });
  expect(named('WebDAVFS/3.0.0 (03008000) Darwin/24.3.0 (arm64)').reportsQuota).toBe(true);
});
