import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { linkedSignal } from '../../../src/util/abort.ts';

/** Counts the listeners on a signal, and the references that Node keeps in sets of the signal. */
function listenersOn(signal: AbortSignal): number {
  const kept = Object.getOwnPropertySymbols(signal).map((name) => Reflect.get(signal, name));
  const inSets = kept.reduce((sum: number, value) => sum + (value instanceof Set ? value.size : 0), 0);
  return inSets + getEventListeners(signal, 'abort').length;
}

test('linkedSignal is aborted with the first of its sources and its reason', () => {
  const one = new AbortController();
  const other = new AbortController();
  const { signal } = linkedSignal(one.signal, other.signal);
  expect(signal.aborted).toBe(false);
  other.abort('enough');
  one.abort('too late');
  expect(signal.reason).toBe('enough');
});

test('linkedSignal of an already aborted source is aborted at once', () => {
  const { signal } = linkedSignal(new AbortController().signal, AbortSignal.abort('long ago'));
  expect(signal.reason).toBe('long ago');
});

test('linkedSignal leaves no listener on a source after an abort or a release', () => {
  const life = new AbortController().signal;
  for (let times = 0; times < 3; times++) {
    const work = new AbortController();
    const linked = linkedSignal(life, work.signal);
    expect(listenersOn(life)).toBe(1);
    if (times === 0) work.abort();
    else linked.release();
    expect(listenersOn(life)).toBe(0);
  }
  linkedSignal(life, AbortSignal.abort());
  expect(listenersOn(life)).toBe(0);
});

test('linkedSignal is not aborted after its release', () => {
  const source = new AbortController();
  const { signal, release } = linkedSignal(source.signal);
  release();
  source.abort();
  expect(signal.aborted).toBe(false);
});
