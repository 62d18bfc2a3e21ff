import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { downloadRate, uploadRate } from '../../load.ts';
import { makeLargeFile, send } from '../api.ts';
import { DavClient } from '../dav.ts';
import { REALISTIC } from '../profile.ts';
import type { Upstream } from '../upstream.ts';
import { counted, type Row, type Work } from '../work.ts';
import { allStored } from './small-writes.ts';

const MIB = 1024 * 1024;
const GET_BYTES = 1024 * MIB;
const PUT_BYTES = 512 * MIB;
/** Share of the service's own rate that a gateway should reach. */
const SHARE_OF_BARE = 0.7;
/** Share of the rival's rate when a file is read again: rclone does not check what it has cached. */
const SHARE_AGAIN = 0.8;
/** Multiple of the rival's processor time. */
const PROCESSOR_TIMES_MAX = 1.3;
const MB_PER_MIB = 1.048576;

const rate = (title: string, wanted: string): Row => ({
  title,
  unit: 'MiB/s',
  wanted,
  met: (own, rival, bare) =>
    own.value >= rival.value && (bare === undefined || own.value >= bare * SHARE_OF_BARE),
});

const get: Work = {
  name: 'get',
  faults: REALISTIC,
  modes: ['off', 'full'],
  rounds: 3,
  rows: [
    rate('GET 1 GiB, cold', 'at least equal, and 70 % of what curl gets from the service'),
    {
      title: 'GET 1 GiB, again',
      unit: 'MiB/s',
      wanted: `${SHARE_AGAIN} of the rival's rate`,
      met: (own, rival) => own.value >= rival.value * SHARE_AGAIN,
    },
    {
      title: 'processor time of both reads',
      unit: 's',
      wanted: `at most ${PROCESSOR_TIMES_MAX} times the rival's`,
      met: (own, rival) => own.value <= rival.value * PROCESSOR_TIMES_MAX,
    },
  ],
  fill: (upstream) => makeLargeFile(upstream, '/large', GET_BYTES),
  async measure(site) {
    const { url, headers } = site.gateway;
    const ask = { url: `${url}large`, method: 'GET', headers };
    const figures = [];
    const secondsBefore = site.gateway.processorSeconds();
    for (let time = 0; time < 2; time++) {
      const { result, calls } = await counted(site, () => downloadRate(ask, GET_BYTES));
      figures.push({ value: result / MB_PER_MIB, calls });
    }
    const calls = figures.reduce((sum, figure) => sum + figure.calls, 0);
    return [...figures, { value: site.gateway.processorSeconds() - secondsBefore, calls }];
  },
  async bare(upstream) {
    return [GET_BYTES / MIB / (await curlSeconds(upstream))];
  },
};

/** Downloads once with curl, over the same TLS as the gateways. Returns the seconds. */
async function curlSeconds({ front, token }: Upstream): Promise<number> {
  const { stdout } = await promisify(execFile)('curl', [
    ...['-s', '-S', '--fail', '-o', '/dev/null', '-w', '%{time_total}', '-X', 'POST'],
    ...['--cacert', front.environment['SSL_CERT_FILE'] ?? '', '-H', `Authorization: Bearer ${token}`],
    ...['-H', 'Dropbox-API-Arg: {"path":"/large"}', `${front.url}/2/files/download`],
  ]);
  return Number(stdout);
}

const put: Work = {
  name: 'put-large',
  faults: REALISTIC,
  modes: ['off', 'writes', 'full'],
  rounds: 3,
  rows: [rate('PUT 512 MiB, stored', 'at least equal, and 70 % of the bare upload session')],
  async measure(site) {
    const client = new DavClient(site.gateway);
    await client.send('MKCOL', `${site.ownFolder}/`);
    client.close();
    const ask = {
      url: `${site.gateway.url}${site.ownFolder}/large`,
      method: 'PUT',
      headers: site.gateway.headers,
    };
    const { seconds, calls } = await counted(site, async () => {
      await uploadRate(ask, PUT_BYTES, Buffer.alloc(MIB, `${site.ownFolder} `));
      await allStored(site, 1, PUT_BYTES);
    });
    return [{ value: PUT_BYTES / MIB / seconds, calls }];
  },
  async bare(upstream) {
    const start = performance.now();
    await bareSession(upstream);
    return [PUT_BYTES / MIB / ((performance.now() - start) / 1000)];
  },
};

const PART_BYTES = 16 * MIB;
const PARTS_AT_ONCE = 4;

/** Uploads by a concurrent session directly to the service. */
async function bareSession(upstream: Upstream): Promise<void> {
  const none = Buffer.alloc(0);
  const begun = await send(upstream, 'files/upload_session/start', { session_type: 'concurrent' }, none);
  const { session_id } = begun as { session_id: string };
  const part = Buffer.alloc(PART_BYTES, 'the bare session ');
  let next = 0;
  const work = async () => {
    for (let offset = next; offset < PUT_BYTES; offset = next) {
      next += PART_BYTES;
      const close = offset + PART_BYTES >= PUT_BYTES;
      const argument = { cursor: { session_id, offset }, close };
      await send(upstream, 'files/upload_session/append_v2', argument, part);
    }
  };
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, work));
  const commit = { cursor: { session_id, offset: PUT_BYTES }, commit: { path: '/bare', mode: 'overwrite' } };
  await send(upstream, 'files/upload_session/finish', commit, none);
}

export const LARGE: readonly Work[] = [get, put];
