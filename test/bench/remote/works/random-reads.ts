import { makeLargeFile } from '../api.ts';
import { DavClient } from '../dav.ts';
import { NEAR } from '../profile.ts';
import { counted, type Figure, type Site, type Work } from '../work.ts';

const FILE_BYTES = 4 * 1024 ** 3;
const READ_BYTES = 64 * 1024;
const READS = 150;
const PARALLEL_READS = 1_000;
const CONNECTIONS = 8;
const PARALLEL_PER_SECOND_MIN = 200;
const FETCHED_PER_BYTE_MAX = 16;
const WARM_TIMES = 10;

/** Offsets of all reads, the same for every rival, in an order that read-ahead cannot predict. */
const OFFSETS = Array.from(
  { length: READS + PARALLEL_READS },
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
    {
      title: `the same at other places, ${CONNECTIONS} connections, cold`,
      unit: '/s',
      wanted: `at least ${PARALLEL_PER_SECOND_MIN} a second, at most ${FETCHED_PER_BYTE_MAX} bytes fetched per byte`,
      met: (own) => own.value >= PARALLEL_PER_SECOND_MIN && fetchedPerByte(own) <= FETCHED_PER_BYTE_MAX,
    },
  ],
  fill: (upstream) => makeLargeFile(upstream, '/huge', FILE_BYTES),
  async measure(site) {
    const few = OFFSETS.slice(0, READS);
    const cold = await readAll(site, few, 1);
    const again = await readAll(site, few, 1);
    const parallel = await readAll(site, OFFSETS.slice(READS), CONNECTIONS);
    return [inMilliseconds(cold), inMilliseconds(again), parallel];
  },
};

const fetchedPerByte = (figure: Figure) => Number(/^(\d+) bytes/.exec(figure.note ?? '')?.[1] ?? Number.NaN);

const inMilliseconds = (figure: Figure): Figure => ({ ...figure, value: 1000 / figure.value });

/** Reads at `offsets`; the value is the reads a second. */
async function readAll(site: Site, offsets: readonly number[], connections: number): Promise<Figure> {
  const client = new DavClient(site.gateway, connections);
  const { seconds, calls, traffic } = await counted(site, () =>
    client.each(offsets, (offset) =>
      client.send('GET', 'huge', {
        headers: { range: `bytes=${offset}-${offset + READ_BYTES - 1}` },
        expected: [206],
      }),
    ),
  );
  client.close();
  const fetched = traffic.receivedBytes / (offsets.length * READ_BYTES);
  return { value: offsets.length / seconds, calls, note: `${fetched.toFixed(0)} bytes fetched per byte` };
}
