import { setTimeout as sleep } from 'node:timers/promises';
import { makeFiles, send } from '../api.ts';
import { DavClient } from '../dav.ts';
import { REALISTIC } from '../profile.ts';
import { counted, type Row, type Site, type Work } from '../work.ts';

const FILES = 1000;
const SECONDS_MAX = 0.3;
/** Interval between two looks for a change made elsewhere, in ms. */
const LOOK_MS = 20;
const VISIBLE_TIMEOUT_MS = 180_000;

// Calls of the change feed after a change are not counted in these rows, because they are the same for any
// change.
const relocated = (title: string): Row => ({
  title,
  unit: 's',
  wanted: `one call, under ${SECONDS_MAX} s`,
  met: (own) => own.calls === 1 && own.value < SECONDS_MAX,
});

const relocation: Work = {
  name: 'relocation',
  faults: REALISTIC,
  modes: ['off'],
  rounds: 1,
  rows: ['MOVE', 'COPY', 'DELETE'].map((method) => relocated(`${method} of a folder with 1,000 files`)),
  async measure(site) {
    const { gateway, ownFolder, upstream } = site;
    await makeFiles(
      upstream,
      Array.from({ length: FILES }, (_, index) => `/${ownFolder}/all/file ${index}`),
      100,
    );
    const client = new DavClient(gateway);
    await seen(client, ownFolder, 'all/');
    const to = (name: string) => ({
      headers: { destination: `${gateway.url}${ownFolder}/${name}/`, overwrite: 'F' },
    });
    const steps = [
      () => client.send('MOVE', `${ownFolder}/all/`, to('moved')),
      () => client.send('COPY', `${ownFolder}/moved/`, to('copied')),
      () => client.send('DELETE', `${ownFolder}/copied/`),
    ];
    const figures = [];
    for (const step of steps) {
      const { seconds, calls, feedCalls } = await counted(site, step);
      figures.push({ value: seconds, calls: calls - feedCalls });
      // Calls of the change feed must not be counted in the next measurement.
      await sleep(1000);
    }
    if ((await client.list(`${ownFolder}/moved`)).length !== FILES)
      throw new Error('not all files were moved');
    client.close();
    return figures;
  },
};

const visible: Work = {
  name: 'outside-change',
  faults: REALISTIC,
  modes: ['off'],
  rounds: 2,
  rows: [
    {
      title: 'an outside change becomes visible',
      unit: 's',
      wanted: 'within 1 s',
      met: (own) => own.value <= 1,
    },
  ],
  async measure(site) {
    const { ownFolder, upstream } = site;
    await makeFiles(upstream, [`/${ownFolder}/before`], 10);
    const client = new DavClient(site.gateway);
    await seen(client, ownFolder, 'before');
    await sleep(2000);
    const { seconds, calls } = await counted(site, async () => {
      await send(upstream, 'files/upload', { path: `/${ownFolder}/after` }, Buffer.from('new'));
      const start = performance.now();
      await seen(client, ownFolder, 'after');
      return start;
    });
    client.close();
    return [{ value: seconds, calls }];
  },
};

/** Waits until a folder lists a name. */
async function seen(client: DavClient, folder: string, name: string): Promise<void> {
  const deadlineMs = performance.now() + VISIBLE_TIMEOUT_MS;
  for (;;) {
    const { status, text } = await client.send('PROPFIND', `${folder}/`, {
      headers: { depth: '1' },
      expected: [207, 404],
    });
    if (status === 207 && text.includes(`/${folder}/${name}`)) return;
    if (performance.now() > deadlineMs) throw new Error(`${folder}/${name} does not appear`);
    await sleep(LOOK_MS);
  }
}

const callRow = (title: string, most: number): Row => ({
  title: `${title}, parent known`,
  unit: 'calls',
  wanted: `${most} calls`,
  met: (own) => own.value <= most,
});

const single: Work = {
  name: 'single-calls',
  faults: REALISTIC,
  modes: ['off'],
  rounds: 1,
  rows: [callRow('HEAD', 0), callRow('MKCOL', 1), callRow('MOVE of a file', 1)],
  async measure(site: Site) {
    const { gateway, ownFolder, upstream } = site;
    await makeFiles(upstream, [`/${ownFolder}/a`, `/${ownFolder}/b`], 10);
    const client = new DavClient(gateway);
    await seen(client, ownFolder, 'a');
    const destination = `${gateway.url}${ownFolder}/moved`;
    const steps = [
      () => client.send('HEAD', `${ownFolder}/a`),
      () => client.send('MKCOL', `${ownFolder}/new/`),
      () => client.send('MOVE', `${ownFolder}/b`, { headers: { destination, overwrite: 'T' } }),
    ];
    const figures = [];
    for (const step of steps) {
      await sleep(1000);
      const { calls, feedCalls } = await counted(site, step);
      figures.push({ value: calls - feedCalls, calls: calls - feedCalls });
    }
    client.close();
    return figures;
  },
};

export const TREE: readonly Work[] = [relocation, visible, single];
