import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { makeFolder } from '../../../src/util/make-folder.ts';
import { builtUrl } from '../../support/build.ts';
import { eventually } from '../../support/eventually.ts';
import type { Callable } from '../../support/service-client.ts';
import { ServiceProcess } from '../../support/service-process.ts';
import { Api } from '../model/api.ts';

/** Makes a folder for the blocks of several processes, removed after the test. */
export async function newBlockFolder(): Promise<string> {
  const folder = join(await temporary(), 'blocks');
  makeFolder(folder);
  return folder;
}

async function temporary(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-nodes-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Service processes that share their data, ended after the test. */
export class Nodes {
  private constructor(readonly all: readonly ServiceProcess[]) {}

  static async started(
    count: number,
    options: ConstructorParameters<typeof ServiceProcess>[2],
  ): Promise<Nodes> {
    const all: ServiceProcess[] = [];
    for (let index = 0; index < count; index++) {
      const node = new ServiceProcess(builtUrl('service/server.ts'), await temporary(), options);
      all.push(node);
      onTestFinished(() => node.end('SIGKILL'));
    }
    await Promise.all(all.map((node) => node.start()));
    return new Nodes(all);
  }

  at(index: number): ServiceProcess {
    const node = this.all[index % this.all.length];
    if (!node) throw new Error('there are no nodes');
    return node;
  }

  /** Returns calls that go to another node each time. */
  inTurn(first: number): Callable {
    let count = first;
    const next = () => this.at(count++);
    const { token } = this.at(0);
    return {
      token,
      get url() {
        return next().url;
      },
    };
  }

  /** Kills a node and starts it again after `work`, even if the database is away for a while. */
  async whileKilled(index: number, work: () => Promise<void>): Promise<void> {
    const node = this.at(index);
    await node.end('SIGKILL');
    await work();
    await eventually(() => node.start());
  }

  /** Returns the calls of each node. */
  get apis(): readonly Api[] {
    const { token } = this.at(0);
    return this.all.map(
      (node) =>
        new Api({
          token,
          get url() {
            return node.url;
          },
        }),
    );
  }
}
