import { expect } from 'vitest';
import type { Callable } from '../../support/service-client.ts';
import { Api, type Shown } from '../model/api.ts';
import type { Change } from '../model/steps.ts';
import { hashOf, TreeRun } from '../model/tree-run.ts';
import { once, patiently, UNANSWERED } from './answers.ts';

/** A tree whose listings are repeated until a node answers. */
class PatientTree extends TreeRun {
  override async listed(): Promise<Shown[]> {
    const argument = { path: this.folder, recursive: true, include_deleted: true, limit: 2000 };
    const page = await patiently(() =>
      this.api.rpc<{ entries: Shown[]; has_more: boolean }>('files/list_folder', argument),
    );
    if (typeof page === 'string' || page.has_more) throw new Error(`list_folder: ${JSON.stringify(page)}`);
    return page.entries;
  }
}

/** A file that a writer makes once, and never changes. */
interface LoggedFile {
  readonly path: string;
  readonly text: string;
  /** Its rev, if the upload was acknowledged. */
  readonly rev: string | undefined;
}

/**
 * A client that changes a folder of its own at random, and makes a file in another one after each change. Its calls go to
 * one node after the other. It goes on when a call has no answer, once it knows what became of it.
 */
export class Writer {
  readonly logged: LoggedFile[] = [];
  acknowledged = 0;
  unanswered = 0;
  readonly tree: TreeRun;
  readonly #api: Api;

  constructor(
    nodes: Callable,
    private readonly name: string,
  ) {
    this.tree = new PatientTree(nodes, `/${name}`);
    this.#api = new Api(nodes);
  }

  begin(): Promise<void> {
    return this.tree.begin();
  }

  async make(change: Change): Promise<void> {
    const { tree } = this;
    const before = tree.model.copy();
    const expected = tree.expected(change);
    const answer = await once(() => tree.actual(change));
    if (answer !== UNANSWERED) {
      this.acknowledged += 1;
      tree.expectSame(answer, expected);
    } else {
      this.unanswered += 1;
      await this.#settle();
      if (tree.difference(await tree.listed(), before) === '') tree.model = before;
    }
    await tree.expectState();
    await this.#log();
  }

  async #log(): Promise<void> {
    const count = this.logged.length;
    const path = `/log/${this.name}-${count}`;
    const text = `${path} `.repeat(count % 4 === 0 ? 10_000 : 10);
    const argument = { path, mode: 'add', strict_conflict: true };
    const answer = await once(() => this.#api.upload<Shown>('files/upload', argument, text));
    if (answer === UNANSWERED) {
      this.unanswered += 1;
      await this.#settle();
    } else this.acknowledged += 1;
    if (typeof answer === 'string') throw new Error(`${path}: ${answer}`);
    const rev = answer === UNANSWERED ? undefined : answer.rev;
    this.logged.push({ path, text, rev });
  }

  /** Waits for transactions of a killed node that have not ended: they have the lock that this change needs. */
  async #settle(): Promise<void> {
    const path = `/settled/${this.name}-${this.unanswered}`;
    const made = await patiently(() => this.#api.rpc('files/create_folder_v2', { path }));
    if (typeof made === 'string') expect(made).toBe('path/conflict/folder');
  }
}

/** Expects of each file that a writer made: it is there if that was acknowledged, and then it is whole. */
export async function expectLogged(writer: Writer, entries: readonly Shown[], api: Api): Promise<void> {
  const shown = new Map(entries.map((entry) => [entry.path_lower, entry]));
  for (const { path, text, rev } of writer.logged) {
    const entry = shown.get(path);
    if (rev !== undefined) expect([path, entry?.rev]).toEqual([path, rev]);
    if (!entry) continue;
    expect([path, entry.content_hash]).toEqual([path, hashOf(text)]);
    expect(hashOf(await api.download(path))).toBe(hashOf(text));
  }
}
