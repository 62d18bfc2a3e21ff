import { expect, test } from 'vitest';
import { MetadataCache } from '../../../../src/drive/cache/metadata-cache.ts';
import { Freshness, TreeCache } from '../../../../src/drive/cache/tree-cache.ts';
import { Announcer } from '../../../../src/drive/changes.ts';
import { ModifiedTimes } from '../../../../src/drive/modified-times.ts';
import { silentMeter } from '../../../../src/util/meter.ts';
import { ROOT } from '../../../../src/util/path.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

/** Opens a cache whose change feed is alive. */
function openMetadata(remote: MemoryRemote, changes = new Announcer()): MetadataCache {
  const { clock, availability } = remote;
  const freshness = new Freshness(clock, 10_000);
  freshness.up();
  freshness.heard();
  return new MetadataCache({
    remote,
    availability,
    cache: new TreeCache(clock, 2 ** 20, freshness),
    times: new ModifiedTimes({
      of: async () => new Map(),
      ids: async () => [],
      isEmpty: async () => true,
      set: async () => {},
      forget: async () => {},
    }),
    clock,
    isHidden: () => false,
    meter: silentMeter,
    changes,
  });
}

test('the report of a file that was looked up before an older write of another gateway was told is not ignored', async () => {
  const remote = new MemoryRemote();
  const metadata = openMetadata(remote);
  const theirs = remote.putFile(at('/a'), 'of another gateway');
  const newer = remote.putFile(at('/a'), 'from elsewhere');
  expect(await metadata.stat(at('/a'))).toEqual(newer);
  const places = [{ path: at('/a'), isTree: false, outcome: theirs }];
  metadata.applyOther({ places, isNew: false, madeMs: 0 }, { isCertain: true });
  const reports = [theirs, newer].map((entry) => ({ kind: 'put', entry }) as const);
  await metadata.apply(reports, { doubted: false });
  expect(await metadata.stat(at('/a'))).toEqual(newer);
});

test('the deletion of a file that was made and deleted elsewhere between two reports is announced, as the trash has it', async () => {
  const changes = new Announcer();
  const metadata = openMetadata(new MemoryRemote(), changes);
  const announced: string[] = [];
  changes.follow((change) => void (change.kind === 'entry' && announced.push(change.path)));
  await metadata.list(ROOT);
  await metadata.apply([{ kind: 'deleted', path: at('/gone') }], { doubted: false });
  expect(announced).toEqual(['/gone']);
});

test('the report of a deletion that davgate itself has made is not announced again', async () => {
  const remote = new MemoryRemote();
  remote.putFile(at('/a'));
  const changes = new Announcer();
  const metadata = openMetadata(remote, changes);
  await metadata.list(ROOT);
  await metadata.begin([at('/a')]).end([[at('/a'), 'absent']]);
  const announced: string[] = [];
  changes.follow((change) => void (change.kind === 'entry' && announced.push(change.path)));
  await metadata.apply([{ kind: 'deleted', path: at('/a') }], { doubted: false });
  expect(announced).toEqual([]);
});
