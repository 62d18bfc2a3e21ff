import { makeFiles } from '../api.ts';
import { DavClient, PROPFIND_BODY } from '../dav.ts';
import { REALISTIC } from '../profile.ts';
import { counted, type Figure, type Row, type Site, type Work } from '../work.ts';

const FILES = 20;
const FILE_BYTES = 4096;
const START_MS_MAX = 350;

const noSlower = (title: string): Row => ({
  title,
  unit: 'ms',
  wanted: 'no slower',
  met: (own, rival) => own.value <= rival.value,
});

/** The first seconds of a gateway: what a user waits for after a login or a restart. */
export const START: Work = {
  name: 'start',
  faults: REALISTIC,
  modes: ['off', 'full'],
  rounds: 5,
  rows: [
    {
      title: 'start of the process to the first answer',
      unit: 'ms',
      wanted: `under ${START_MS_MAX} ms`,
      met: (own) => own.value < START_MS_MAX,
    },
    noSlower('OPTIONS right after the start'),
    noSlower('PROPFIND of a listed file right after the start'),
    noSlower(`GET of a listed file of ${FILE_BYTES / 1024} KiB right after the start, service 50 ms away`),
  ],
  fill: (upstream) =>
    makeFiles(
      upstream,
      Array.from({ length: FILES }, (_, index) => `/started/file ${index}`),
      FILE_BYTES,
    ),
  async measure(site) {
    const client = new DavClient(site.gateway);
    const paths = Array.from({ length: FILES }, (_, index) => `started/file%20${index}`);
    const options = await medianOf(site, paths, (path) => client.send('OPTIONS', path));
    await client.list('started');
    const propfind = await medianOf(site, paths, (path) =>
      client.send('PROPFIND', path, { headers: { depth: '0' }, body: PROPFIND_BODY }),
    );
    const get = await medianOf(site, paths, (path) => client.send('GET', path));
    client.close();
    return [{ value: site.gateway.startMs, calls: 0 }, options, propfind, get];
  },
};

/** Sends a request for each path, one after the other. Returns the median of their durations, in ms. */
async function medianOf(
  site: Site,
  paths: readonly string[],
  send: (path: string) => Promise<unknown>,
): Promise<Figure> {
  const { result, calls } = await counted(site, async () => {
    const durations: number[] = [];
    for (const path of paths) {
      const start = performance.now();
      await send(path);
      durations.push(performance.now() - start);
    }
    return durations.sort((a, b) => a - b);
  });
  return { value: result[result.length >> 1] ?? Number.NaN, calls };
}
