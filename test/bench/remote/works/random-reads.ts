import { makeLargeFile } from '../api.ts';
import { DavClient } from '../dav.ts';
import { NEAR } from '../profile.ts';
import { counted, type Figure, type Site, type Work } from '../work.ts';

const FILE_BYTES = 4 * 1024 ** 3;
const READ_BYTES = 64 * 1024;
const READS = 150;
const FETCHED_PER_BYTE_MAX = 64;
const WARM_TIMES = 10;

/** Offsets of the reads, the same for every rival, in an order that read-ahead cannot predict. */
const OFFSETS = Array.from(
  { length: READS },
  (_, index) => ((index * 2_654_435_761) % Math.floor(FILE_BYTES / READ_BYTES)) * READ_BYTES,
);

export const RANDOM_READS: Work = {
  name: 'random-reads',
  faults: NEAR,
  modes: ['off', 'full'],
  rounds: 1,
  rows: [
    {
      title: '64 KiB random reads over 4 GiB at 20 ms, one connection, cold',
      unit: 'ms',
      wanted: `at least equal, at most ${FETCHED_PER_BYTE_MAX} bytes fetched per byte`,
      met: (own, rival) => own.value <= rival.value && fetchedPerByte(own) <= FETCHED_PER_BYTE_MAX,
    },
    {
      title: 'the same places again',
      unit: 'ms',
      wanted: `${WARM_TIMES} times faster`,
      met: (own, rival) => own.value * WARM_TIMES <= rival.value,
    },
  ],
  fill: (upstream) => makeLargeFile(upstream, '/huge', FILE_BYTES),
  async measure(site) {
    return [await readAll(site), await readAll(site)];
  },
};

const fetchedPerByte = (figure: Figure) => Number(/^(\d+) bytes/.exec(figure.note ?? '')?.[1] ?? Number.NaN);

async function readAll(site: Site): Promise<Figure> {
  const client = new DavClient(site.gateway);
  const { seconds, calls, traffic } = await counted(site, () =>
    client.each(OFFSETS, (offset) =>
      client.send('GET', 'huge', {
        headers: { range: `bytes=${offset}-${offset + READ_BYTES - 1}` },
        expected: [206],
      }),
    ),
  );
  client.close();
  const fetched = traffic.receivedBytes / (READS * READ_BYTES);
  return { value: (seconds * 1000) / READS, calls, note: `${fetched.toFixed(0)} bytes fetched per byte` };
}
