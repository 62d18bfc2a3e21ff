import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pathOf, ROOT } from '../../src/util/path.ts';
import { filesContract } from '../contract/files/files.contract.ts';
import { bodyOf } from '../support/bytes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { openServiceDrive, type ServiceDrive } from '../support/service-drive.ts';

/** One service for all tests. Each drive has an account of its own. */
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

filesContract('a drive over the embedded service', () => openServiceDrive(service));

filesContract('a drive over a folder of the account', () => openServiceDrive(service, '/Team/Über uns'));

describe('a drive whose account another program changes', () => {
  let drive: ServiceDrive;
  const at = (text: string) => pathOf(text.split('/').slice(1));
  const any = { mode: { if: 'any' } } as const;

  beforeAll(async () => {
    drive = await openServiceDrive(service);
    await drive.other.write(at('/Docs/a.txt'), bodyOf('a'), any);
    while (!drive.files.status().isFeedAlive) await new Promise((resolve) => setImmediate(resolve));
  });
  afterAll(() => drive.close());

  /** Lists `folder` until its names are `expected`. */
  async function untilShown(folder: string, expected: readonly string[]): Promise<void> {
    for (;;) {
      const shown = (await drive.files.list(at(folder))).children.map(({ name }) => name).sort();
      if (JSON.stringify(shown) === JSON.stringify(expected)) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  test('a drive shows files that another program adds, folders that it moves and files that it removes', async () => {
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

  test('a drive shows its own writes at once while another program writes into the same folder', async () => {
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
