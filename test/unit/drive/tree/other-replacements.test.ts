import { expect, test } from 'vitest';
import { PathLocks } from '../../../../src/drive/path-locks.ts';
import { OtherReplacements } from '../../../../src/drive/tree/other-replacements.ts';
import { pathOf } from '../../../../src/util/path.ts';

const PLACE = pathOf(['x']);

function others() {
  const callLocks = new PathLocks();
  const metadata = { shield: () => () => {} };
  return { callLocks, replacements: new OtherReplacements({ metadata, callLocks, catchUp: undefined }) };
}

/** Returns the names of works in the order in which they hold the place. */
async function orderOf(works: readonly (readonly [string, Promise<unknown>])[]): Promise<readonly string[]> {
  const order: string[] = [];
  await Promise.all(works.map(([name, work]) => work.then(() => order.push(name))));
  return order;
}

test('a replacement of another gateway that is noted holds its place until it ends', async () => {
  const { callLocks, replacements } = others();
  replacements.expect('theirs', PLACE);
  let ran = false;
  const own = callLocks.exclusive([PLACE], async () => {
    ran = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(ran).toBe(false);
  replacements.end('theirs');
  await own;
});

test('a replacement that another gateway tells after an own one waits for that, although it was noted before', async () => {
  const { callLocks, replacements } = others();
  replacements.expect('theirs', PLACE);
  const own = callLocks.exclusive([PLACE], async () => {});
  replacements.begin('theirs', PLACE);
  const later = callLocks.shared([PLACE], async () => {});
  // The other gateway waits for the own one, which must not wait for it.
  await own;
  expect(replacements.ids).toEqual(['theirs']);
  const order = orderOf([
    ['later', later],
    ['end', Promise.resolve().then(() => replacements.end('theirs'))],
  ]);
  expect(await order).toEqual(['end', 'later']);
});

test('a replacement that another gateway has told keeps its turn when it is noticed once more', async () => {
  const { callLocks, replacements } = others();
  replacements.begin('theirs', PLACE);
  const own = callLocks.exclusive([PLACE], async () => 'done');
  replacements.expect('theirs', PLACE);
  replacements.begin('theirs', PLACE);
  const first = await Promise.race([own, new Promise((resolve) => setImmediate(resolve, 'waiting'))]);
  expect(first).toBe('waiting');
  replacements.end('theirs');
  expect(await own).toBe('done');
});
