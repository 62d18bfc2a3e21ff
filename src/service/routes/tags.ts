import { failure, refused } from '../api/failures.ts';
import { absolutePath, itemAddress } from '../api/paths.ts';
import { LOOKUP } from '../api/refusals.ts';
import { type Route, rpc } from '../api/route.ts';
import { list, required, type Schema, string } from '../api/schema.ts';
import type { Tags } from '../directory/tags.ts';
import { itemAt } from '../links/sharing.ts';
import { StorageError } from '../storage/storage.ts';

/** TagText, which is stored in lower case. */
const tagText: Schema<string> = (value) =>
  string({
    minLength: 1,
    maxLength: 32,
    pattern: { shown: '[\\w]+', test: /^[\p{L}\p{M}\p{N}_]+$/u },
  })(value).toLowerCase();

/** A function that changes one tag of one item; `run` returns the tag of its refusal. */
function change(
  name: string,
  run: (tags: Tags, ...tag: Parameters<Tags['add']>) => Promise<string | undefined>,
): Route {
  return rpc({
    name,
    scope: 'files.metadata.write',
    argument: { path: required(absolutePath), tag_text: required(tagText) },
    refusals: LOOKUP,
    handle: async (call) => {
      const { argument, caller, tags } = call;
      const { id } = await itemAt(call, caller, itemAddress(argument.path, caller.account.namespace));
      const refusal = await run(tags, caller.account.id, id, argument.tag_text);
      if (refusal !== undefined) throw refused(failure(refusal));
      return null;
    },
  });
}

const add = change('files/tags/add', async (tags, ...tag) =>
  (await tags.add(...tag)) === 'too-many' ? 'too_many_tags' : undefined,
);

const remove = change('files/tags/remove', async (tags, ...tag) =>
  (await tags.remove(...tag)) ? undefined : 'tag_not_present',
);

const PATHS_MAX = 1000;

/** Returns the tags of all paths; one unknown path refuses the call. */
const get = rpc({
  name: 'files/tags/get',
  scope: 'files.metadata.read',
  argument: { paths: required(list(absolutePath, { max: PATHS_MAX })) },
  refusals: LOOKUP,
  handle: async ({ argument, caller, storage, tags }) => {
    const { id, namespace } = caller.account;
    const addresses = argument.paths.map((path) => itemAddress(path, namespace));
    const items = await storage.statAll(namespace, addresses);
    const ids = items.map((item) => {
      if (item instanceof StorageError) throw item;
      return item.id;
    });
    const paths_to_tags = (await tags.of(id, ids)).map((texts, index) => ({
      path: argument.paths[index],
      tags: texts.map((tag_text) => ({ '.tag': 'user_generated_tag', tag_text })),
    }));
    return { paths_to_tags };
  },
});

export const TAG_ROUTES: readonly Route[] = [add, remove, get];
