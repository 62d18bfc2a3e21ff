import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pathOf, ROOT } from '../../src/util/path.ts';
import { filesContract } from '../contract/files/files.contract.ts';
import { bodyOf } from '../support/bytes.ts';
import { openServiceDrive, type ServiceDrive } from '../support/service-drive.ts';

filesContract('the tree over the embedded service', () => openServiceDrive());

filesContract('the tree over a folder of the account', () => openServiceDrive({ root: '/Team/Über uns' }));

describe('what others do at the service', () => {
  let drive: ServiceDrive;
  const at = (text: string) => pathOf(text.split('/').slice(1));
  const any = { mode: { if: 'any' } } as const;

  beforeAll(async () => {
    drive = await openServiceDrive();
    await drive.other.write(at('/Docs/a.txt'), bodyOf('a'), any);
    while (!drive.files.status().isFeedAlive) await new Promise((resolve) => setImmediate(resolve));
  });
  afterAll(() => drive.close());

  /** Looks again and again until what is shown is `expected`; the test's own time limit ends it. */
  async function untilShown(folder: string, expected: readonly string[]): Promise<void> {
    for (;;) {
      const shown = (await drive.files.list(at(folder))).children.map(({ name }) => name).sort();
      if (JSON.stringify(shown) === JSON.stringify(expected)) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  test('is seen: files that come, folders that move, things that go', async () => {
    await untilShown('/Docs', ['a.txt']);
    await drive.other.write(at('/docs/b.txt'), bodyOf('b'), any);
    await untilShown('/Docs', ['a.txt', 'b.txt']);
    await drive.other.move(at('/Docs'), at('/Texts'));
    await untilShown('/Texts', ['a.txt', 'b.txt']);
    await drive.other.remove(at('/Texts/a.txt'), { permanent: false });
    await untilShown('/Texts', ['b.txt']);
    expect(await drive.files.stat(at('/Docs/a.txt'))).toBeUndefined();
    const names = (await drive.files.list(ROOT)).children.map(({ name }) => name);
    expect(names).toEqual(['Texts']);
  });

  test('and what we do at the same time is never hidden by it', async () => {
    const folder = (await drive.files.createFolder(at('/Busy'))).path;
    await drive.files.list(folder);
    for (let round = 0; round < 30; round++) {
      const theirs = drive.other.write(at(`/Busy/theirs ${round}`), bodyOf(`${round}`), any);
      const ours = at(`/Busy/ours ${round % 5}`);
      const bytes = async function* () {
        yield Buffer.from(`${round}`);
      };
      const { entry } = await drive.files.write(ours, bytes(), any);
      expect(await drive.files.stat(ours)).toEqual(entry);
      expect((await drive.files.list(folder)).children).toContainEqual(entry);
      await theirs;
    }
    const expected = Array.from({ length: 5 }, (_, index) => `ours ${index}`);
    for (let round = 0; round < 30; round++) expected.push(`theirs ${round}`);
    await untilShown('/Busy', expected.sort());
  });
});
