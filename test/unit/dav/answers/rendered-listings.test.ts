import { expect, test } from 'vitest';
import { RenderedListing, RenderedListings } from '../../../../src/dav/answers/rendered-listings.ts';
import { PropertySelection } from '../../../../src/dav/properties/property-selection.ts';
import type { FolderEntry, Listing } from '../../../../src/drive/files.ts';
import { pathOf } from '../../../../src/util/path.ts';

const MIB = 1024 * 1024;

const folder = (name: string): FolderEntry => ({ kind: 'folder', id: name, path: pathOf([name]), name });
const listing = (name: string): Listing => ({ folder: folder(name), children: [] });
const newSelection = () =>
  new PropertySelection(
    { kind: 'prop', names: [] },
    { client: { allprop: 'full', reportsQuota: true }, minimal: false },
  );

function renderedOf(bytes: Uint8Array): RenderedListing {
  const rendered = new RenderedListing();
  rendered.add({ entries: [folder('a')], bytes, isPlain: true });
  return rendered;
}

test('a rendered listing is kept by drive, selection and href', () => {
  const kept = new RenderedListings(MIB);
  const drive = {};
  const selection = newSelection();
  const rendered = renderedOf(Buffer.from('rows'));
  kept.keep(kept.key(drive, selection, '/a/'), rendered);
  expect(kept.get(kept.key(drive, selection, '/a/'))).toBe(rendered);
  for (const other of [
    kept.key({}, selection, '/a/'),
    kept.key(drive, newSelection(), '/a/'),
    kept.key(drive, selection, '/A/'),
  ])
    expect(kept.get(other)).toBeUndefined();
});

test('a rendered listing shows one listing value and one version of the dead properties, once it is complete', () => {
  const rendered = renderedOf(Buffer.from('rows'));
  const one = listing('a');
  expect(rendered.shows(one, 1)).toBe(false);
  rendered.complete(one, 1);
  expect(rendered.shows(one, 1)).toBe(true);
  expect(rendered.shows({ ...one }, 1)).toBe(false);
  expect(rendered.shows(one, 2)).toBe(false);
  expect(rendered.shows(one, undefined)).toBe(false);
});

test('the pieces of a rendered listing lie in its whole answer, once that is known', () => {
  const rendered = new RenderedListing();
  for (const text of ['one', 'three'])
    rendered.add({ entries: [folder(text)], bytes: Buffer.from(text), isPlain: true });
  const answer = Buffer.from('<onethree>');
  rendered.join(answer, answer.subarray(1, -1));
  expect(rendered.answer).toBe(answer);
  expect(rendered.pieces.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(['one', 'three']);
  for (const { bytes } of rendered.pieces) expect(bytes.buffer).toBe(answer.buffer);
});

test('the oldest rendered listings are dropped beyond the limit', () => {
  const kept = new RenderedListings(32 * MIB);
  const keys = Array.from({ length: 10 }, (_, index) => kept.key({}, newSelection(), `/${index}/`));
  for (const key of keys) expect(kept.keep(key, renderedOf(Buffer.alloc(4 * MIB)))).toBe(true);
  expect(keys.filter((key) => kept.get(key))).toEqual(keys.slice(3));
});

test('a rendered listing that has grown beyond the limit is dropped', () => {
  const kept = new RenderedListings(MIB);
  const key = kept.key({}, newSelection(), '/a/');
  const rendered = renderedOf(Buffer.alloc(MIB / 2));
  expect(kept.keep(key, rendered)).toBe(true);
  rendered.add({ entries: [folder('b')], bytes: Buffer.alloc(MIB), isPlain: true });
  expect(kept.keep(key, rendered)).toBe(false);
  expect(kept.has(key, rendered)).toBe(false);
});
