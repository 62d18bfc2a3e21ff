import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { IS_LONG, testSeed } from '../support/effort.ts';
import { Follower, type FollowOptions, linesOf, shownTree } from '../support/follower.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc, upload } from '../support/service-client.ts';

// Clients that know a tree from sync-collection reports alone, while it is changed at random.

/** Number of random changes. */
const STEPS = IS_LONG ? 10_000 : 150;
/** Number of changes after which the followers ask, at most. */
const STEPS_UNSEEN_MAX = 8;
/** Names at each level: few, so that changes meet. */
const NAMES = ['a', 'B', 'ü x'];
const LITTER = ['.DS_Store', '._a'];
const FINDER = 'WebDAVFS/3.0.0 (03008000) Darwin/19.0.0 (x86_64)';
const VIEWS = {
  rooted: [{ at: '/', root: '/a' }],
  several: [
    { at: '/One', root: '/a' },
    { at: '/Two', root: '/B/a' },
  ],
};

interface Followed {
  readonly folder: string;
  readonly options: FollowOptions;
}

const FOLLOWED: readonly Followed[] = [
  { folder: '/', options: {} },
  { folder: '/', options: { limit: 3 } },
  { folder: '/a', options: { level: '1' } },
  { folder: '/B', options: { limit: 1 } },
  { folder: '/', options: { user: 'rooted' } },
  { folder: '/', options: { user: 'several', limit: 4 } },
];

/** Returns a function that draws whole numbers below its argument. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The drive, and the random changes to it. */
class World {
  gateway!: TestGateway;
  client!: GatewayClient;
  #contents = 0;

  constructor(
    private readonly service: TestService,
    private readonly directory: string,
    private readonly random: (below: number) => number,
    private readonly writeBack: boolean,
  ) {}

  async start(): Promise<void> {
    const { service, directory, writeBack } = this;
    this.gateway = await startTestGateway({ service, directory, writeBack, views: VIEWS });
    this.client = new GatewayClient(this.gateway.url);
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.gateway.close();
  }

  /** Makes a random change. Many are refused, because the path is not there or is in use. */
  async step(): Promise<void> {
    const [from, to] = [this.#path(), this.#path()];
    const overwrite = this.random(2) === 0 ? 'T' : 'F';
    const folder = from.slice(0, from.lastIndexOf('/') + 1);
    const litter = folder + (LITTER[this.random(LITTER.length)] ?? '');
    const changes: readonly (() => Promise<unknown>)[] = [
      () => this.#send('PUT', from),
      () => this.#send('PUT', from),
      () => this.#send('MKCOL', from),
      () => this.#send('MKCOL', to),
      () => this.#send('DELETE', from),
      () => this.#send('MOVE', from, { destination: encodeURI(to), overwrite }),
      () => this.#send('COPY', from, { destination: encodeURI(to), overwrite }),
      () => this.#send('PUT', litter),
      () => this.#send('DELETE', litter),
      () => this.#send('PUT', from, { 'user-agent': FINDER }, ''),
      () => this.#elsewhere('move_v2', { from_path: from, to_path: to }),
      () => this.#elsewhere('copy_v2', { from_path: from, to_path: to }),
      () => this.#elsewhere('delete_v2', { path: from }),
      () => this.#elsewhere('create_folder_v2', { path: from }),
      () => this.#uploadElsewhere(from),
    ];
    await changes[this.random(changes.length)]?.();
  }

  async changeElsewhere(): Promise<void> {
    await this.#uploadElsewhere(this.#path());
    await this.#elsewhere('move_v2', { from_path: this.#path(), to_path: this.#path() });
  }

  /** Returns a path of one to three names. */
  #path(): string {
    const names = Array.from({ length: 1 + this.random(3) }, () => NAMES[this.random(NAMES.length)]);
    return `/${names.join('/')}`;
  }

  #content(): string {
    this.#contents += 1;
    return `content ${this.#contents}`;
  }

  async #send(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body = method === 'PUT' ? this.#content() : '',
  ): Promise<void> {
    const { status } = await this.client.send(method, path, { headers, body: Buffer.from(body) });
    if (status >= 500) throw new Error(`${method} ${path} answered ${status}`);
  }

  async #elsewhere(route: string, argument: object): Promise<void> {
    await rpc(this.service, `files/${route}`, argument);
  }

  async #uploadElsewhere(path: string): Promise<void> {
    await upload(this.service, 'files/upload', { path, mode: 'overwrite' }, { body: this.#content() });
  }
}

test.each([
  ['write-through', false],
  ['write-back', true],
])(
  'after any changes, made here or elsewhere, and restarts, followers have exactly the tree that PROPFIND shows, with %s',
  async (_, writeBack) => {
    const seed = testSeed();
    const random = randomFrom(seed);
    const service = await startTestService();
    const directory = await mkdtemp(join(tmpdir(), 'davgate-sync-model-'));
    const world = new World(service, directory, random, writeBack);
    await world.start();
    const tokens = new Map<Followed, { token: string; tree: ReadonlyMap<string, string> }>();
    const shownLines = ({ folder, options }: Followed) =>
      unlessGone(async () => linesOf(await shownTree(world.client, folder, options)));
    /** Lets a client ask and compares. A difference that lasts is a change that it has missed. */
    const check = async (followed: Followed, step: number): Promise<void> => {
      const { folder, options } = followed;
      if (await hasFileAsRoot(world.client, options)) {
        tokens.delete(followed);
        return;
      }
      const known = tokens.get(followed);
      const follower = new Follower(world.client, folder, options);
      follower.token = known?.token ?? '';
      for (const [href, state] of known?.tree ?? []) follower.tree.set(href, state);
      for (let attempt = 1; ; attempt++) {
        const [has, shown] = [await treeOf(follower), await shownLines(followed)];
        if (has === undefined || shown === undefined) {
          tokens.delete(followed);
          if (attempt < 5 && (await isFolder(world.client, folder, options))) continue;
          return;
        }
        tokens.set(followed, { token: follower.token, tree: new Map(follower.tree) });
        // Files that wait for a body, and pending ones, are sent at any moment.
        if (attempt < 5 && JSON.stringify(has) !== JSON.stringify(shown)) continue;
        expect(has, `TEST_SEED=${seed}, step ${step}, ${JSON.stringify(followed)}`).toEqual(shown);
        return;
      }
    };
    try {
      for (let step = 0; step < STEPS; ) {
        const count = 1 + random(STEPS_UNSEEN_MAX);
        if (random(4) > 0) for (let each = 0; each < count; each++) await world.step();
        // Changes at the same time, and reports during them.
        else
          await Promise.all([
            ...Array.from({ length: count }, () => world.step()),
            ...FOLLOWED.map((one) => followOnce(world, one, tokens)),
          ]);
        step += count;
        if (random(60) === 0) {
          await world.stop();
          await world.changeElsewhere();
          await world.start();
        }
        const followed = FOLLOWED[random(FOLLOWED.length)];
        if (followed) await check(followed, step);
      }
      for (const followed of FOLLOWED) await check(followed, STEPS);
    } finally {
      await world.stop();
      await service.close();
      await rm(directory, { recursive: true });
    }
  },
);

/** Lets a client ask; returns what it knows then, or `undefined` if the folder is not there. */
function treeOf(follower: Follower): Promise<readonly string[] | undefined> {
  return unlessGone(async () => {
    await follower.follow();
    return linesOf(follower.tree);
  });
}

async function unlessGone<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (/answered (403|404|409|503)/.test(String(error))) return undefined;
    throw error;
  }
}

/** Lets a client ask while the drive is changed. */
async function followOnce(
  { client }: World,
  followed: Followed,
  tokens: Map<Followed, { token: string; tree: ReadonlyMap<string, string> }>,
): Promise<void> {
  const known = tokens.get(followed);
  if (!known || !(await isFolder(client, followed.folder, followed.options))) return;
  const follower = new Follower(client, followed.folder, followed.options);
  follower.token = known.token;
  for (const [href, state] of known.tree) follower.tree.set(href, state);
  await treeOf(follower);
  tokens.set(followed, { token: follower.token, tree: new Map(follower.tree) });
}

/** Whether a file is where the root of one of the user's drives should be: such a drive shows the folder or the file. */
async function hasFileAsRoot(client: GatewayClient, { user }: FollowOptions): Promise<boolean> {
  const views = user === 'rooted' || user === 'several' ? VIEWS[user] : [];
  const headers = { depth: '0', ...(user !== undefined && { 'x-test-user': user }) };
  for (const { at } of views) {
    const { status, body } = await client.send('PROPFIND', at, { headers });
    if (status === 207 && !body.includes('<D:collection/>')) return true;
  }
  return false;
}

async function isFolder(client: GatewayClient, path: string, { user }: FollowOptions): Promise<boolean> {
  const headers = { depth: '0', ...(user !== undefined && { 'x-test-user': user }) };
  const { status, body } = await client.send('PROPFIND', path, { headers });
  return status === 207 && body.includes('<D:collection/>');
}
