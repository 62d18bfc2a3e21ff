import fc from 'fast-check';

/** Few names and texts, so that steps affect each other. Two stand for contents in block files. */
const TEXTS = ['', 'one', 'two', 'large A', 'large B'] as const;

/**
 * Returns the content that texts of `TEXTS` stand for. The short form keeps the output of a failed run
 * readable.
 */
export function bytesOf(text: string): string {
  return text.replaceAll(/large (.)/g, (_, letter: string) => letter.repeat(70_000));
}

const name = fc.constantFrom('a', 'A', 'b.x', '😀', 'c');
/** A path below the run's folder. */
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`);
const text = fc.constantFrom(...TEXTS);
const rev = fc.nat(60);
const session = fc.nat(3);
/** Every follower but the last. */
const follower = fc.nat(2);
const mode = fc.oneof(fc.constantFrom('add' as const, 'overwrite' as const), fc.record({ rev }));
const commit = { path, mode, autorename: fc.boolean(), strict: fc.boolean() };
const paths = fc.array(path, { minLength: 1, maxLength: 3 });
const pairs = fc.array(fc.record({ path, to: path }), { minLength: 1, maxLength: 3 });

const as = <const Name extends string, Fields extends object>(
  weight: number,
  does: Name,
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
) => ({
  weight,
  arbitrary: fc.record({ do: fc.constant(does), ...fields }) as fc.Arbitrary<
    { readonly do: Name } & Readonly<Fields>
  >,
});

/** Changes of the tree by one call, which a kill may interrupt. */
export const change = fc.oneof(
  as(8, 'upload', { ...commit, text }),
  as(3, 'folder', { path, autorename: fc.boolean() }),
  as(3, 'remove', { path }),
  as(1, 'forever', { path }),
  as(5, 'relocate', { path, to: path, copy: fc.boolean(), autorename: fc.boolean() }),
  as(3, 'restore', { path, rev }),
);

export const step = fc.oneof(
  { weight: 22, arbitrary: change },
  as(3, 'start', { text, close: fc.boolean(), kind: fc.constantFrom('sequential', 'concurrent') }),
  as(4, 'append', { session, text, shift: fc.constantFrom(0, 0, 0, 1), close: fc.boolean() }),
  as(4, 'finish', { ...commit, session, text }),
  as(2, 'finish-batch', { session, commits: fc.array(fc.record(commit), { minLength: 1, maxLength: 3 }) }),
  as(1, 'folder-batch', { paths, autorename: fc.boolean() }),
  as(1, 'remove-batch', { paths }),
  as(2, 'relocate-batch', { pairs, copy: fc.boolean(), autorename: fc.boolean() }),
  as(2, 'metadata', { path, includeDeleted: fc.boolean() }),
  as(2, 'download', { path, from: fc.nat(4) }),
  as(1, 'download-rev', { rev }),
  as(2, 'list', { path, limit: fc.integer({ min: 1, max: 3 }) }),
  as(2, 'revisions', { path, limit: fc.integer({ min: 1, max: 4 }) }),
  as(3, 'follow', { follower }),
  as(3, 'page', { follower }),
  as(2, 'await', { follower, during: change }),
  as(2, 'link', { path }),
  as(2, 'show-link', { link: fc.nat(5) }),
  as(1, 'revoke', { link: fc.nat(5) }),
);

export type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A restart of the service, for a kill in the middle of a change. */
export const restart = fc.oneof(
  as(1, 'restart', { signal: fc.constantFrom('SIGTERM' as const, 'SIGKILL' as const) }),
  as(2, 'kill', { during: change, afterMs: fc.nat(4) }),
);

export type Restart = typeof restart extends fc.Arbitrary<infer T> ? T : never;
