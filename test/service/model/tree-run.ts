import { expect } from 'vitest';
import { ContentHasher } from '../../../src/util/content-hash.ts';
import type { Callable } from '../../support/service-client.ts';
import { key, Model, type ModelEntry, type ModelMode } from '../storage/model.ts';
import { Api, type Shown } from './api.ts';
import { bytesOf, type Change } from './steps.ts';

export interface CommitFields {
  readonly path: string;
  readonly mode: 'add' | 'overwrite' | { readonly rev: number };
  readonly autorename: boolean;
  readonly strict: boolean;
}

/** The tree of a run: its model, and the ids and revs of the service. */
export class TreeRun {
  readonly api: Api;
  model = new Model();
  /** Revs and ids of the service by those of the model. */
  readonly revs = new Map<number, string>();
  readonly ids = new Map<number, string>();

  constructor(
    service: Callable,
    /** The run's own folder. */
    readonly folder: string,
  ) {
    this.api = new Api(service);
  }

  async begin(): Promise<void> {
    this.model.createFolder(this.folder, false);
    await this.api.rpc('files/create_folder_v2', { path: this.folder });
    await this.expectState();
  }

  at(path: string): string {
    return this.folder + path;
  }

  /** Applies a change to the model. Returns its entry or refusal. */
  expected(step: Change): ModelEntry | string {
    const { model } = this;
    switch (step.do) {
      case 'upload':
        return prefixed('path/', this.expectedCommit(step, bytesOf(step.text)));
      case 'folder':
        return prefixed('path/', model.createFolder(this.at(step.path), step.autorename));
      case 'remove':
        return prefixed('path_', model.remove(this.at(step.path)));
      case 'forever': {
        const outcome = model.removeForever(this.at(step.path));
        return outcome === 'done' ? outcome : prefixed('path_', outcome);
      }
      case 'relocate':
        return this.expectedRelocation(step, step.copy, step.autorename);
      case 'restore':
        return prefixed('path_write/', model.restore(this.at(step.path), this.#known(step.rev)));
    }
  }

  expectedCommit({ path, mode, autorename, strict }: CommitFields, text: string): ModelEntry | string {
    const known: ModelMode = typeof mode === 'object' ? { rev: this.#known(mode.rev) } : mode;
    return this.model.upload(this.at(path), text, known, autorename, strict);
  }

  expectedRelocation(
    { path, to }: { readonly path: string; readonly to: string },
    copy: boolean,
    autorename: boolean,
  ): ModelEntry | string {
    return prefixed('to/', this.model.relocate(this.at(path), this.at(to), copy, autorename));
  }

  /** Makes a change on the service. Returns its entry or refusal. */
  async actual(step: Change): Promise<Shown | string> {
    const { api } = this;
    switch (step.do) {
      case 'upload':
        return await api.upload<Shown>('files/upload', this.commit(step), bytesOf(step.text));
      case 'folder':
        return inner(await api.rpc('files/create_folder_v2', this.#named(step)));
      case 'remove':
        return inner(await api.rpc('files/delete_v2', { path: this.at(step.path) }));
      case 'forever': {
        const answer = await api.rpc<null>('files/permanently_delete', { path: this.at(step.path) });
        return answer ?? 'done';
      }
      case 'relocate': {
        const { autorename } = step;
        const argument = { from_path: this.at(step.path), to_path: this.at(step.to), autorename };
        return inner(await api.rpc(`files/${step.copy ? 'copy' : 'move'}_v2`, argument));
      }
      case 'restore':
        return await api.rpc<Shown>('files/restore', { path: this.at(step.path), rev: this.rev(step.rev) });
    }
  }

  /** Returns the CommitInfo of an upload. */
  commit({ path, mode, autorename, strict }: CommitFields): object {
    const wire = typeof mode === 'object' ? { '.tag': 'update', update: this.rev(mode.rev) } : mode;
    return { path: this.at(path), mode: wire, autorename, strict_conflict: strict };
  }

  /** Returns the service's rev of a revision of the model, or an unknown rev. */
  rev(index: number): string {
    return this.revs.get(index) ?? 'abcdef0123';
  }

  expectSame(actual: Shown | string, expected: ModelEntry | string): void {
    if (typeof expected === 'string' || typeof actual === 'string') {
      expect(actual).toEqual(expected);
      return;
    }
    const { path, id, rev, text } = expected;
    expect(actual.path_display).toBe(path);
    expect(actual.path_lower).toBe(key(path));
    expect(actual.id).toBe(this.ids.get(id) ?? actual.id);
    expect(actual.content_hash).toBe(text === undefined ? undefined : hashOf(text));
    expect(actual.size).toBe(text?.length);
    if (rev !== undefined) expect(actual.rev).toBe(this.revs.get(rev) ?? actual.rev);
  }

  /** Lists the whole folder with its deletions. */
  async listed(): Promise<Shown[]> {
    const argument = { path: this.folder, recursive: true, include_deleted: true, limit: 2000 };
    const page = await this.api.rpc<{ entries: Shown[]; has_more: boolean }>('files/list_folder', argument);
    if (typeof page === 'string' || page.has_more) throw new Error(`list_folder: ${JSON.stringify(page)}`);
    return page.entries;
  }

  /** Compares the service with the model and records the revs and ids of new entries. */
  async expectState(): Promise<void> {
    const listed = await this.listed();
    expect(this.difference(listed, this.model)).toBe('');
    for (const entry of this.model.entries.values()) {
      const shown = listed.find(({ path_lower }) => path_lower === key(entry.path));
      if (shown) this.ids.set(entry.id, shown.id);
      if (shown?.rev && entry.rev !== undefined) this.revs.set(entry.rev, shown.rev);
    }
    expect(new Set(this.ids.values()).size, 'an id is never two entries').toBe(this.ids.size);
    expect(new Set(this.revs.values()).size, 'a rev is never two revisions').toBe(this.revs.size);
  }

  /** Describes the difference between the service and a model; `''` if they are equal. */
  difference(listed: readonly Shown[], model: Model): string {
    const live = listed.filter((entry) => entry['.tag'] !== 'deleted');
    const words = (lines: readonly string[]) => [...lines].sort().join('\n');
    const shown = words(
      live.map(({ path_display, id, rev, content_hash }) => {
        return [path_display, id, rev ?? 'folder', content_hash].join(' ');
      }),
    );
    const wanted = words(
      [...model.entries.values()].map(({ path, id, rev, text }) => {
        const now = live.find(({ path_lower }) => path_lower === key(path));
        const revWanted = rev === undefined ? 'folder' : (this.revs.get(rev) ?? now?.rev);
        const hash = text === undefined ? undefined : hashOf(text);
        return [path, this.ids.get(id) ?? now?.id, revWanted, hash].join(' ');
      }),
    );
    const deleted = words(
      listed.filter((entry) => entry['.tag'] === 'deleted').map(({ path_lower }) => path_lower),
    );
    const wantedDeleted = words([...model.deleted.keys()]);
    if (shown !== wanted) return `live:\n${shown}\nin place of:\n${wanted}`;
    return deleted === wantedDeleted ? '' : `deleted:\n${deleted}\nin place of:\n${wantedDeleted}`;
  }

  #named({ path, autorename }: { readonly path: string; readonly autorename: boolean }): object {
    return { path: this.at(path), autorename };
  }

  /** Returns the revision if the service's rev of it is known, otherwise -1. */
  #known(index: number): number {
    return this.revs.has(index) ? index : -1;
  }
}

/** Returns a refusal of the model with the tags of the call. */
export function prefixed(prefix: string, outcome: ModelEntry | string): ModelEntry | string {
  if (typeof outcome !== 'string') return outcome;
  if (outcome === 'lookup/not_found') return `${prefix === 'to/' ? 'from_' : prefix}lookup/not_found`;
  return outcome.startsWith('conflict/') ? prefix + outcome : outcome.replace(/^(relocation|revision)\//, '');
}

function inner(answer: Record<string, unknown> | string): Shown | string {
  return typeof answer === 'string' ? answer : (answer['metadata'] as Shown);
}

const HASHES = new Map<string, string>();

export function hashOf(text: string): string {
  const hash = HASHES.get(text) ?? new ContentHasher().update(Buffer.from(text)).digest();
  HASHES.set(text, hash);
  return hash;
}
