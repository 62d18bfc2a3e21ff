import type { Item } from './dav.ts';
import { type FileKind, kindOf } from './kinds.ts';

/** The drawing and its colour on a file's sheet of paper. */
const DRAWN: Readonly<Record<FileKind, { readonly colour: string; readonly path: string }>> = {
  image: { colour: '#2f9e6b', path: 'M11 27l5-7 4 5 2-3 4 5zM24 18.5a1.5 1.5 0 1 0 0-.1' },
  video: { colour: '#8a5cd6', path: 'M15 17.5v10l8-5z' },
  audio: { colour: '#d6567f', path: 'M14.5 26.5a2 2 0 1 0 2 2v-8l7-1.5v6a2 2 0 1 0 2 2v-11l-11 2.5z' },
  pdf: { colour: '#d64545', path: 'M13 28c4-3 6-8 5-11s-2-1-1 2 5 6 8 6 2-2-1-2-8 2-11 5z' },
  text: { colour: '#5b7db1', path: 'M12 17.5h14M12 21h14M12 24.5h14M12 28h8' },
  archive: { colour: '#9a7b2f', path: 'M19 6v3M19 11v3M19 16v3M17 21h4v5h-4z' },
  other: { colour: '#7d8899', path: '' },
};

/** The drawing of an item's kind. */
export function ItemIcon({ item }: { readonly item: Item }) {
  if (item.kind === 'folder')
    return (
      <svg class="icon" viewBox="0 0 38 38" aria-hidden="true">
        <path fill="#4a8df0" opacity=".75" d="M4 11a3 3 0 0 1 3-3h8l4 4h12a3 3 0 0 1 3 3v4H4z" />
        <path fill="#6fa5f7" d="M4 15h30v13a3 3 0 0 1-3 3H7a3 3 0 0 1-3-3z" />
      </svg>
    );
  const { colour, path } = DRAWN[kindOf(item.name)];
  return (
    <svg class="icon" viewBox="0 0 38 38" aria-hidden="true" stroke={colour} stroke-linejoin="round">
      <path fill={colour} fill-opacity=".13" stroke-width="1.6" d="M8 3.5h15l8 8v23H8zM23 3.5v8h8" />
      <path fill="none" stroke-width="1.6" stroke-linecap="round" d={path} />
    </svg>
  );
}

const SIGNS = {
  inbox: 'M12 3v10M8 9l4 4 4-4M4 14h4l2 3h4l2-3h4v6H4z',
  upload: 'M12 16V4M7 9l5-5 5 5M4 16v4h16v-4',
  folder: 'M3 7a2 2 0 0 1 2-2h4l2 2h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2zM12 10v6M9 13h6',
  text: 'M13 3H6v18h12V8zM13 3v5h5M9 13h6M9 17h6',
  rename: 'M4 20h16M6 16l9-9 3 3-9 9H6z',
  move: 'M4 12h14M13 7l5 5-5 5',
  copy: 'M8 8h12v12H8zM16 8V4H4v12h4',
  download: 'M12 4v12M7 11l5 5 5-5M4 20h16',
  remove: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  versions: 'M12 7v5l3 2M4.5 9A8 8 0 1 1 4 12M4 5v4h4',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M12 17v-6M9.5 13.5L12 11l2.5 2.5',
  close: 'M6 6l12 12M18 6L6 18',
  list: 'M8 5h12M8 12h12M8 19h12M3.5 5h.01M3.5 12h.01M3.5 19h.01',
  grid: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
  previous: 'M15 5l-7 7 7 7',
  next: 'M9 5l7 7-7 7',
  share:
    'M16.5 6.5a2.5 2.5 0 1 0 0-.1M5 12a2.5 2.5 0 1 0 0-.1M16.5 17.5a2.5 2.5 0 1 0 0-.1M10 11l6.5-3.5M10 13l6.5 3.5',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1.5 1.5M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1.5-1.5',
  connect: 'M4 5h16v10H4zM9 20h6M12 15v5',
  key: 'M14 10a4 4 0 1 0 .1 0M10.5 11.5L4 18v2h3v-2h2v-2h2l1.5-1.5',
  leave: 'M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9',
  check: 'M5 13l4 4L19 7',
  lock: 'M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3',
  clock: 'M12 4a8 8 0 1 0 .1 0M12 8v4l3 2',
  retry: 'M20 11a8 8 0 1 0-2.3 6.7M20 5v6h-6',
};

export type SignName = keyof typeof SIGNS;

/** The sign on a button. */
export function Sign({ name }: { readonly name: SignName }) {
  return (
    <svg class="sign" viewBox="0 0 24 24" aria-hidden="true">
      <path d={SIGNS[name]} />
    </svg>
  );
}
