import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { linkedSignal } from '../../../src/util/abort.ts';

/** What hangs on a signal: listeners, and the references that Node keeps in sets of its own. */
function hangingOn(signal: AbortSignal): number {
  const kept = Object.getOwnPropertySymbols(signal).map((name) => Reflect.get(signal, name));
  const inSets = kept.reduce((sum: number, value) => sum + (value instanceof Set ? value.size : 0), 0);
  return inSets + getEventListeners(signal, 'abort').length;
}

test('it is aborted with the first of its sources, for its reason', () => {
  const one = new AbortController();
  const other = new AbortController();
  const { signal } = linkedSignal(one.signal, other.signal);
  expect(signal.aborted).toBe(false);
  other.abort('enough');
  one.abort('too late');
  expect(signal.reason).toBe('enough');
});

test('a source that was aborted before does it at once', () => {
  const { signal } = linkedSignal(new AbortController().signal, AbortSignal.abort('long ago'));
  expect(signal.reason).toBe('long ago');
});

test('a signal that lives on keeps nothing of the work that is over', () => {
  const life = new AbortController().signal;
  for (let times = 0; times < 3; times++) {
    const work = new AbortController();
    const linked = linkedSignal(life, work.signal);
    expect(hangingOn(life)).toBe(1);
    if (times === 0) work.abort();
    else linked.release();
    expect(hangingOn(life)).toBe(0);
  }
  linkedSignal(life, AbortSignal.abort());
  expect(hangingOn(life)).toBe(0);
});

test('after it was released, no source aborts it', () => {
  const source = new AbortController();
  const { signal, release } = linkedSignal(source.signal);
  release();
  source.abort();
  expect(signal.aborted).toBe(false);
});
