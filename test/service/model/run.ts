import { expect } from 'vitest';
import type { ServiceProcess } from '../../support/service-process.ts';
import { key, type ModelEntry } from '../storage/model.ts';
import type { Page, Shown } from './api.ts';
import { Follower } from './follower.ts';
import { SessionRun } from './session-run.ts';
import type { Change, Restart, Step } from './steps.ts';
import { hashOf, prefixed, TreeRun } from './tree-run.ts';

type StepOf<Name extends Step['do']> = Extract<Step, { readonly do: Name }>;

/** Runs steps on a service and its model. A difference throws. */
export class Run {
  readonly #tree: TreeRun;
  readonly #sessions: SessionRun;
  /** Shared links: the model's id of the item, and the URL. */
  readonly #links: { readonly id: number; readonly url: string }[] = [];
  /** Followers of the changes. The last one follows only at the end. */
  readonly #followers: readonly Follower[];

  constructor(
    private readonly service: ServiceProcess,
    folder: string,
  ) {
    this.#tree = new TreeRun(service, folder);
    this.#sessions = new SessionRun(this.#tree);
    this.#followers = [
      { recursive: true, limit: 500 },
      { recursive: true, limit: 2 },
      { recursive: false, limit: 3 },
      { recursive: true, limit: 1 },
    ].map((scope) => new Follower(this.#tree, scope));
  }

  async begin(): Promise<void> {
    await this.#tree.begin();
    for (const follower of this.#followers) await follower.begin();
  }

  async take(step: Step | Restart): Promise<void> {
    const tree = this.#tree;
    switch (step.do) {
      case 'restart':
        await this.#followers[0]?.awaitAcross(() => this.service.restart(step.signal));
        return await tree.expectState();
      case 'kill':
        return await this.#kill(step);
      case 'start':
        return await this.#sessions.start(step);
      case 'append':
        return await this.#sessions.append(step);
      case 'finish':
        await this.#sessions.finish(step);
        return await tree.expectState();
      case 'finish-batch':
        await this.#sessions.finishBatch(step);
        return await tree.expectState();
      case 'folder-batch':
      case 'remove-batch':
      case 'relocate-batch':
        return await this.#batch(step);
      case 'metadata':
        return await this.#metadata(step);
      case 'download':
        return await this.#download(step);
      case 'download-rev':
        return await this.#downloadRevision(step);
      case 'list':
        return await this.#list(step);
      case 'revisions':
        return await this.#revisions(step);
      case 'follow':
        await this.#followers[step.follower]?.follow();
        return;
      case 'page':
        await this.#followers[step.follower]?.page();
        return;
      case 'await':
        return await this.#followers[step.follower]?.awaitDuring(() => this.#change(step.during));
      case 'link':
        return await this.#link(step);
      case 'show-link':
        return await this.#showLink(step);
      case 'revoke':
        return await this.#revoke(step);
      default:
        return await this.#change(step);
    }
  }

  /** Lets every follower catch up and compares it with the model. */
  async follow(): Promise<void> {
    for (const follower of this.#followers) await follower.follow();
  }

  async #change(step: Change): Promise<void> {
    const expected = this.#tree.expected(step);
    this.#tree.expectSame(await this.#tree.actual(step), expected);
    await this.#tree.expectState();
  }

  /** Kills the service during a change, which must then be done or not begun. */
  async #kill({ during, afterMs }: Extract<Restart, { do: 'kill' }>): Promise<void> {
    const tree = this.#tree;
    const before = tree.model.copy();
    const expected = tree.expected(during);
    const call = tree.actual(during).catch(() => 'cut off');
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await this.service.end('SIGKILL');
    const answered = await call;
    await this.service.start();
    if (answered !== 'cut off') tree.expectSame(answered, expected);
    else if (tree.difference(await tree.listed(), before) === '') tree.model = before;
    await tree.expectState();
  }

  async #batch(step: StepOf<'folder-batch' | 'remove-batch' | 'relocate-batch'>): Promise<void> {
    const tree = this.#tree;
    const answers = await this.#batchAnswers(step);
    const expected = this.#batchExpected(step);
    expect(answers).toHaveLength(expected.length);
    for (const [index, one] of expected.entries()) tree.expectSame(answers[index] as Shown | string, one);
    await tree.expectState();
  }

  async #batchAnswers(step: StepOf<'folder-batch' | 'remove-batch' | 'relocate-batch'>) {
    const { api, at } = { api: this.#tree.api, at: (path: string) => this.#tree.at(path) };
    if (step.do === 'folder-batch')
      return await api.batch('files/create_folder_batch', {
        paths: step.paths.map(at),
        autorename: step.autorename,
      });
    if (step.do === 'remove-batch')
      return await api.batch('files/delete_batch', {
        entries: step.paths.map((path) => ({ path: at(path) })),
      });
    const entries = step.pairs.map(({ path, to }) => ({ from_path: at(path), to_path: at(to) }));
    const { autorename } = step;
    return await api.batch(`files/${step.copy ? 'copy' : 'move'}_batch_v2`, { entries, autorename });
  }

  #batchExpected(step: StepOf<'folder-batch' | 'remove-batch' | 'relocate-batch'>): (ModelEntry | string)[] {
    const { model } = this.#tree;
    const at = (path: string) => this.#tree.at(path);
    if (step.do === 'folder-batch') {
      // A path named twice is one folder, answered twice.
      const made = new Map<string, ModelEntry | string>();
      for (const path of step.paths)
        if (!made.has(key(path)))
          made.set(key(path), prefixed('path/', model.createFolder(at(path), step.autorename)));
      return step.paths.map((path) => made.get(key(path)) ?? 'nothing');
    }
    if (step.do === 'remove-batch')
      return step.paths.map((path) => prefixed('path_', model.remove(at(path))));
    return step.pairs.map((pair) => {
      const outcome = this.#tree.expectedRelocation(pair, step.copy, step.autorename);
      return typeof outcome === 'string' ? `relocation_error/${outcome}` : outcome;
    });
  }

  async #metadata({ path, includeDeleted }: StepOf<'metadata'>): Promise<void> {
    const { api, model } = this.#tree;
    const argument = { path: this.#tree.at(path), include_deleted: includeDeleted };
    const answer = await api.rpc<Shown>('files/get_metadata', argument);
    const entry = model.entries.get(key(argument.path));
    const isDeleted = includeDeleted && model.deleted.has(key(argument.path));
    if (entry || !isDeleted) return this.#tree.expectSame(answer, entry ?? 'path/not_found');
    expect(answer).toMatchObject({ '.tag': 'deleted', path_lower: key(argument.path) });
  }

  async #download({ path, from }: StepOf<'download'>): Promise<void> {
    const { api, model } = this.#tree;
    const entry = model.entries.get(key(this.#tree.at(path)));
    const text = entry?.text;
    const isRange = text !== undefined && from > 0 && from < text.length;
    const answer = await api.download(this.#tree.at(path), isRange ? `bytes=${from}-` : undefined);
    if (!entry) return expect(answer).toBe('!path/not_found');
    if (text === undefined) return expect(answer).toBe('!path/not_file');
    expect(hashOf(answer)).toBe(hashOf(isRange ? text.slice(from) : text));
  }

  async #downloadRevision({ rev }: StepOf<'download-rev'>): Promise<void> {
    const { api, model } = this.#tree;
    const answer = await api.download(`rev:${this.#tree.rev(rev)}`);
    const revision = this.#tree.revs.has(rev) && model.revisions.find((other) => other.rev === rev);
    expect(hashOf(answer)).toBe(hashOf(revision ? revision.text : '!path/not_found'));
  }

  /** Lists a folder's children page by page. */
  async #list({ path, limit }: StepOf<'list'>): Promise<void> {
    const { api, model } = this.#tree;
    const folder = key(this.#tree.at(path));
    const entry = model.entries.get(folder);
    let page = await api.rpc<Page>('files/list_folder', { path: this.#tree.at(path), limit });
    if (entry?.text !== undefined || !entry)
      return expect(page).toBe(entry ? 'path/not_folder' : 'path/not_found');
    const names: string[] = [];
    for (;;) {
      if (typeof page === 'string') throw new Error(`list_folder: ${page}`);
      names.push(...page.entries.map(({ path_display }) => path_display));
      expect(page.entries.length).toBeLessThanOrEqual(limit);
      if (!page.has_more) break;
      page = await api.rpc<Page>('files/list_folder/continue', { cursor: page.cursor });
    }
    const children = model.paths.filter((other) => key(other.slice(0, other.lastIndexOf('/'))) === folder);
    expect(names.sort()).toEqual(children);
  }

  async #revisions({ path, limit }: StepOf<'revisions'>): Promise<void> {
    const { api, model } = this.#tree;
    const at = key(this.#tree.at(path));
    const argument = { path: this.#tree.at(path), limit };
    type Revisions = { is_deleted: boolean; entries: Shown[]; has_more: boolean };
    const answer = await api.rpc<Revisions>('files/list_revisions', argument);
    const live = model.entries.get(at);
    const deleted = model.deleted.get(at);
    if (!live && !deleted) return expect(answer).toBe('path/not_found');
    if ((live && live.text === undefined) || deleted?.folder) return expect(answer).toBe('path/not_file');
    const history = model.history(this.#tree.at(path)).map(hashOf);
    expect(answer).toMatchObject({ is_deleted: !live, has_more: history.length > limit });
    expect((answer as Revisions).entries.map(({ content_hash }) => content_hash)).toEqual(
      history.slice(0, limit),
    );
  }

  async #link({ path }: StepOf<'link'>): Promise<void> {
    const { api, model } = this.#tree;
    const name = 'sharing/create_shared_link_with_settings';
    const answer = await api.rpc<{ url: string; id: string }>(name, { path: this.#tree.at(path) });
    const entry = model.entries.get(key(this.#tree.at(path)));
    if (!entry) return expect(answer).toBe('path/not_found');
    if (this.#links.some(({ id }) => id === entry.id))
      return expect(answer).toBe(
        `shared_link_already_exists/metadata/${entry.text === undefined ? 'folder' : 'file'}`,
      );
    if (typeof answer === 'string') throw new Error(`link: ${answer}`);
    expect(answer.id).toBe(this.#tree.ids.get(entry.id));
    this.#links.push({ id: entry.id, url: answer.url });
  }

  async #showLink({ link: index }: StepOf<'show-link'>): Promise<void> {
    const link = this.#links[index];
    if (!link) return;
    const answer = await this.#tree.api.rpc('sharing/get_shared_link_metadata', { url: link.url });
    const entry = [...this.#tree.model.entries.values()].find(({ id }) => id === link.id);
    if (!entry) return expect(answer).toBe('shared_link_not_found');
    expect(answer).toMatchObject({ path_lower: key(entry.path) });
    // The URL has the item's current name; its token and key stay the same.
    const keysOf = (url: unknown) => {
      const { pathname, searchParams } = new URL(String(url));
      return [pathname.split('/')[3], searchParams.get('rlkey')];
    };
    expect(keysOf((answer as { url?: unknown }).url)).toEqual(keysOf(link.url));
  }

  async #revoke({ link: index }: StepOf<'revoke'>): Promise<void> {
    const link = this.#links[index];
    if (!link) return;
    const answer = await this.#tree.api.rpc('sharing/revoke_shared_link', { url: link.url });
    const isLive = [...this.#tree.model.entries.values()].some(({ id }) => id === link.id);
    // A deleted item's link is closed, and housekeeping removes it once the item is removed forever.
    if (isLive || answer !== 'shared_link_not_found') expect(answer).toBeNull();
    if (answer !== null) return;
    this.#links.splice(index, 1);
    const shown = await this.#tree.api.rpc('sharing/get_shared_link_metadata', { url: link.url });
    expect(shown).toBe('shared_link_not_found');
  }
}
