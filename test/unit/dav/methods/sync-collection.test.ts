import { afterEach, expect, test } from 'vitest';
import type { ChangeLog } from '../../../../src/drive/files.ts';
import type { Path } from '../../../../src/util/path.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

let dav: DavServer;
afterEach(() => dav.close());

/** Starts a drive with `count` files that the change log does not know. Their names do not compress. */
async function startWithUnlogged(count: number, nameLength: number): Promise<void> {
  const revisions = new Map<Path, string>();
  const changeLog: ChangeLog = {
    position: async () => 'here',
    since: async () => ({ changed: [], deleted: [], position: 'here' }),
    unlogged: async () => revisions,
    seal: async (_, content) => Buffer.from(content).toString('base64url'),
    unseal: async (_, text) => Buffer.from(text, 'base64url'),
  };
  dav = await startDav({ wrap: (drive) => ({ ...drive, changeLog }) });
  for (let index = 0; index < count; index++) {
    const name = pseudoRandomBytes(nameLength, index).toString('base64url').slice(0, nameLength);
    await dav.file(`/._${name}`);
    revisions.set(path(`/._${name}`), `${index}`);
  }
}

const report = (token: string) =>
  dav.send('REPORT', '/', {
    body:
      `<sync-collection xmlns="DAV:"><sync-token>${token}</sync-token><sync-level>1</sync-level>` +
      '<prop><getetag/></prop></sync-collection>',
  });

/** Asks for all pages of the first report. Returns the last answer, with its token. */
async function firstReport() {
  for (let token = ''; ; ) {
    const { status, text } = await report(token);
    token = /<D:sync-token>([^<]*)</.exec(text)?.[1] ?? '';
    if (status !== 207 || !text.includes('number-of-matches-within-limits')) return { status, text, token };
  }
}

test('a report brings a token back that names 15,000 files of davgate alone', async () => {
  await startWithUnlogged(15_000, 80);
  const { token } = await firstReport();
  expect(token.length).toBeGreaterThan(1_100_000);
  const { status, text } = await report(token);
  expect([status, text.includes('<D:response>')]).toEqual([207, false]);
});

test('a report whose token would be too long for the next request answers 507 and says what to do', async () => {
  await startWithUnlogged(13_000, 250);
  const { status, text } = await firstReport();
  expect([status, text]).toEqual([507, expect.stringContaining('Use PROPFIND')]);
  expect(text).toContain('<D:number-of-matches-within-limits/>');
});
