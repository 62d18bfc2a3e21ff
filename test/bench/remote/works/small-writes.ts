import { setTimeout as sleep } from 'node:timers/promises';
import { sizesIn } from '../api.ts';
import { DavClient } from '../dav.ts';
import { REALISTIC, WITHOUT_CONTENTION } from '../profile.ts';
import { commitsIn, counted, type Figure, type Row, type Site, type Work } from '../work.ts';

const FILES = 200;
const SIZE_BYTES = 10 * 1024;
const BODY = Buffer.alloc(SIZE_BYTES, 'ten kibibytes ');
/**
 * Interval between two checks that all files have arrived, in ms. The checks are not counted as calls of the
 * gateway.
 */
const LOOK_MS = 250;
const STORED_TIMEOUT_MS = 600_000;
const FINDER = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/21.6.0 (x86_64)' };

const names = Array.from({ length: FILES }, (_, index) => `file%20${index}.txt`);
const commitsPerFile = (figure: Figure) =>
  Number(/([\d.]+) commits/.exec(figure.note ?? '')?.[1] ?? Number.NaN);

const one: Work = {
  name: 'put-serial',
  faults: REALISTIC,
  modes: ['off'],
  rounds: 1,
  rows: [
    {
      title: `${FILES} files × 10 KiB, one after another, write-through`,
      unit: 's',
      wanted: 'no slower, at most 1 commit each',
      met: (own, rival) => own.value <= rival.value * NOISE && commitsPerFile(own) <= 1,
    },
  ],
  measure: (site) => putAll(site, 1, (client, path) => client.send('PUT', path, { body: BODY })),
};

/** Ratio between two runs of the same measurement. */
const NOISE = 1.05;

function parallel(isContended: boolean): Work {
  const row: Row = isContended
    ? {
        title: 'the same, 8 in parallel, write-through, with contention',
        unit: 's',
        wanted: '10 times faster',
        met: (own, rival) => own.value * 10 <= rival.value,
      }
    : {
        title: 'the same, 8 in parallel, write-through, without contention',
        unit: 's',
        wanted: 'no slower',
        met: (own, rival) => own.value <= rival.value * NOISE,
      };
  return {
    name: isContended ? 'put-parallel-contended' : 'put-parallel',
    faults: isContended ? REALISTIC : WITHOUT_CONTENTION,
    modes: ['off', 'off, batches'],
    rounds: 1,
    rows: [row],
    measure: (site) => putAll(site, 8, (client, path) => client.send('PUT', path, { body: BODY })),
  };
}

const finder: Work = {
  name: 'put-finder',
  faults: REALISTIC,
  modes: ['off'],
  rounds: 1,
  rows: [
    {
      title: "the same, Finder's choreography (PROPFIND, LOCK, PUT, UNLOCK), one after another",
      unit: 's',
      wanted: '1.8 times faster, 1 commit a file',
      met: (own, rival) => own.value * 1.8 <= rival.value && commitsPerFile(own) <= 1,
    },
  ],
  measure: (site) => putAll(site, 1, asFinder),
};

const LOCK_BODY =
  '<?xml version="1.0" encoding="utf-8"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>' +
  '<D:locktype><D:write/></D:locktype><D:owner><D:href>http://www.apple.com/webdav_fs/</D:href></D:owner></D:lockinfo>';

async function asFinder(client: DavClient, path: string): Promise<void> {
  await client.send('PROPFIND', path, { headers: { ...FINDER, depth: '0' }, expected: [404] });
  const locked = await client.send('LOCK', path, {
    headers: { ...FINDER, depth: '0', timeout: 'Second-600', 'content-type': 'text/xml' },
    body: LOCK_BODY,
  });
  const token = String(locked.headers['lock-token']);
  await client.send('PUT', path, { headers: { ...FINDER, if: `(${token})` }, body: BODY });
  await client.send('UNLOCK', path, { headers: { ...FINDER, 'lock-token': token } });
}

async function putAll(
  site: Site,
  connections: number,
  put: (client: DavClient, path: string) => Promise<unknown>,
): Promise<Figure[]> {
  const client = new DavClient(site.gateway, connections);
  await client.send('MKCOL', `${site.ownFolder}/`);
  const { seconds, calls, traffic } = await counted(site, () =>
    client.each(names, (name) => put(client, `${site.ownFolder}/${name}`)),
  );
  client.close();
  await allStored(site, FILES, SIZE_BYTES);
  const note = `${(commitsIn(traffic) / FILES).toFixed(2)} commits a file, ${traffic.refusedCount} × 429`;
  return [{ value: seconds, calls, note }];
}

const back: Work = {
  name: 'put-back',
  faults: REALISTIC,
  modes: ['writes', 'full'],
  rounds: 1,
  davgateWords: ['--write-mode', 'back'],
  rows: [
    {
      title: 'the same, write-back: acknowledged',
      unit: 's',
      wanted: 'no slower',
      met: (own, rival) => own.value <= rival.value * NOISE,
    },
    {
      title: 'the same, write-back: all stored upstream',
      unit: 's',
      wanted: '10 times faster',
      met: (own, rival) => own.value * 10 <= rival.value,
    },
  ],
  async measure(site) {
    const client = new DavClient(site.gateway, 1);
    await client.send('MKCOL', `${site.ownFolder}/`);
    let acknowledgedSeconds = 0;
    const { seconds, calls } = await counted(site, async () => {
      const start = performance.now();
      await client.each(names, (name) => client.send('PUT', `${site.ownFolder}/${name}`, { body: BODY }));
      acknowledgedSeconds = (performance.now() - start) / 1000;
      await allStored(site, FILES, SIZE_BYTES);
    });
    client.close();
    return [
      { value: acknowledgedSeconds, calls: 0 },
      { value: seconds, calls },
    ];
  },
};

/** Waits until the service has `count` files of this size in the measurement's folder. */
export async function allStored(
  { upstream, ownFolder }: Site,
  files: number,
  sizeBytes: number,
): Promise<void> {
  const deadlineMs = performance.now() + STORED_TIMEOUT_MS;
  for (;;) {
    const sizes = await sizesIn(upstream, `/${ownFolder}`);
    if (sizes.filter((size) => size === sizeBytes).length === files) return;
    if (performance.now() > deadlineMs) throw new Error(`${ownFolder}: ${sizes.length} files are stored`);
    await sleep(LOOK_MS);
  }
}

export const SMALL_WRITES: readonly Work[] = [one, parallel(false), parallel(true), finder, back];
