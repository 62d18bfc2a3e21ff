import { itemAddress } from '../addresses.ts';
import { failure, refused } from '../failures.ts';
import { itemAt } from '../links/linkable.ts';
import { absolutePath } from '../path-schemas.ts';
import { LOOKUP } from '../refusals.ts';
import { type Call, type Caller, type Route, rpc } from '../route.ts';
import { list, required, type Schema, string } from '../schema.ts';
import type { Stored } from '../storage/storage.ts';

/** TagText, which the service keeps in lower case. */
const tagText: Schema<string> = (value) =>
  string({
    minLength: 1,
    maxLength: 32,
    pattern: { shown: '[\\w]+', test: /^[\p{L}\p{M}\p{N}_]+$/u },
  })(value).toLowerCase();

const add = rpc({
  name: 'files/tags/add',
  scope: 'files.metadata.write',
  argument: { path: required(absolutePath), tag_text: required(tagText) },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller, tags } = call;
    const { id } = tagged(call, argument.path);
    if (tags.add(caller.account.id, id, argument.tag_text) === 'too-many')
      throw refused(failure('too_many_tags'));
    return null;
  },
});

const remove = rpc({
  name: 'files/tags/remove',
  scope: 'files.metadata.write',
  argument: { path: required(absolutePath), tag_text: required(tagText) },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller, tags } = call;
    const { id } = tagged(call, argument.path);
    if (!tags.remove(caller.account.id, id, argument.tag_text)) throw refused(failure('tag_not_present'));
    return null;
  },
});

const PATHS_MAX = 1000;

/** All of them or none: one unknown path refuses the call. */
const get = rpc({
  name: 'files/tags/get',
  scope: 'files.metadata.read',
  argument: { paths: required(list(absolutePath, { max: PATHS_MAX })) },
  refusals: LOOKUP,
  handle: (call) => {
    const { argument, caller, tags } = call;
    const paths_to_tags = argument.paths.map((path) => ({
      path,
      tags: tags
        .of(caller.account.id, tagged(call, path).id)
        .map((tag_text) => ({ '.tag': 'user_generated_tag', tag_text })),
    }));
    return { paths_to_tags };
  },
});

export const TAG_ROUTES: readonly Route[] = [add, remove, get];

function tagged(call: Call<Caller>, path: string): Stored {
  return itemAt(call, call.caller, itemAddress(path, call.caller.account.namespace));
}
