import { type Ask, rateOf } from '../../load.ts';
import { makeFiles } from '../api.ts';
import { DavClient, PROPFIND_BODY } from '../dav.ts';
import { REALISTIC } from '../profile.ts';
import { counted, type Figure, type Row, type Site, type Work } from '../work.ts';

const FOLDERS = 200;
const FILES_EACH = 20;
const LISTED = [10, 1000, 10_000];
const CONNECTIONS = 4;
const RATE_MS = 2000;
/** Warm-up of the just-in-time compiler: number of requests, and its longest duration on a busy machine. */
const WARM_UP = { requests: 4000, maxMs: 12_000 };

function walk(connections: number, times: number): Work {
  return {
    name: `walk-${connections}`,
    faults: REALISTIC,
    modes: ['off'],
    rounds: 2,
    rows: [
      {
        title: `cold walk, ${FOLDERS} folders × ${FILES_EACH} files, ${connections === 1 ? 'one connection' : `${connections} connections`}`,
        unit: 's',
        wanted: `${times} times faster`,
        met: (own, rival) => own.value * times <= rival.value,
      },
    ],
    fill: (upstream) => {
      const numbers = Array.from({ length: FOLDERS * FILES_EACH }, (_, index) => index);
      const paths = numbers.map((index) => `/walk/folder ${index % FOLDERS}/file ${index}`);
      return makeFiles(upstream, paths, 10);
    },
    measure: async (site) => {
      const client = new DavClient(site.gateway, connections);
      const { seconds, calls } = await counted(site, async () => {
        const folders = await client.list('walk');
        if (folders.length !== FOLDERS) throw new Error(`${folders.length} folders were listed`);
        await client.each(folders, async (folder) => {
          const files = await client.list(`walk/${folder.replace(/\/$/, '').replaceAll(' ', '%20')}`);
          if (files.length !== FILES_EACH) throw new Error(`${folder}: ${files.length} files were listed`);
        });
      });
      client.close();
      return [{ value: seconds, calls }];
    },
  };
}

function warmRow(children: number, times: number): Row {
  return {
    title: `warm Depth 1, ${children.toLocaleString('en')} children, ${CONNECTIONS} connections`,
    unit: '/s',
    wanted: `${times} times the rate`,
    met: (own, rival) => own.value >= rival.value * times,
  };
}

const warm: Work = {
  name: 'warm',
  faults: REALISTIC,
  modes: ['off'],
  rounds: 2,
  rows: [warmRow(10, 1.5), warmRow(1000, 20), warmRow(10_000, 20)],
  async fill(upstream) {
    for (const children of LISTED) {
      const paths = Array.from({ length: children }, (_, index) => `/of ${children}/file ${index}.txt`);
      await makeFiles(upstream, paths, 10);
    }
  },
  async measure(site) {
    const figures: Figure[] = [];
    for (const children of LISTED) figures.push(await warmRate(site, children));
    return figures;
  },
};

async function warmRate(site: Site, children: number): Promise<Figure> {
  const { url, headers } = site.gateway;
  const ask = {
    url: `${url}of%20${children}/`,
    method: 'PROPFIND',
    headers: { ...headers, depth: '1', 'content-type': 'application/xml' },
    body: PROPFIND_BODY,
  };
  await warmUp(ask);
  const { result, calls } = await counted(site, () => rateOf(ask, CONNECTIONS, RATE_MS));
  return { value: result, calls };
}

async function warmUp(ask: Ask): Promise<void> {
  const untilMs = performance.now() + WARM_UP.maxMs;
  for (let requests = 0; requests < WARM_UP.requests && performance.now() < untilMs; )
    requests += await rateOf(ask, CONNECTIONS, 1000);
}

export const BROWSING: readonly Work[] = [walk(1, 10), walk(8, 3), warm];
