import { endingOf } from '../../../util/file-name.ts';
import { type Html, html } from '../../../util/html.ts';

/** Kinds of items, each with an icon. */
export type IconKind =
  | 'folder'
  | 'image'
  | 'video'
  | 'audio'
  | 'pdf'
  | 'text'
  | 'code'
  | 'table'
  | 'slides'
  | 'archive'
  | 'other';

const ENDINGS: Readonly<Record<Exclude<IconKind, 'folder' | 'other'>, string>> = {
  image: 'png jpg jpeg gif webp avif svg bmp ico tif tiff heic ppm psd',
  video: 'mp4 m4v mov webm ogv mkv avi',
  audio: 'mp3 m4a aac flac ogg oga opus wav',
  pdf: 'pdf',
  text: 'txt text log md markdown rtf doc docx odt tex epub',
  code: 'js mjs cjs ts tsx jsx json html htm xml css scss py rb rs go c h cpp hpp java kt swift sh sql yaml yml toml ini php lua r diff patch',
  table: 'csv tsv xls xlsx ods',
  slides: 'ppt pptx odp key',
  archive: 'zip gz tar tgz bz2 xz 7z rar zst',
};

const KIND_OF_ENDING = new Map(
  Object.entries(ENDINGS).flatMap(([kind, endings]) =>
    // A cast, because `Object.entries` loses the type of the keys.
    endings.split(' ').map((ending) => [ending, kind as IconKind] as const),
  ),
);

/** Returns the kind of a file by the ending of its name. */
export function iconKindOf(name: string): IconKind {
  return KIND_OF_ENDING.get(endingOf(name)) ?? 'other';
}

/** The drawing and its colour on a file's sheet of paper. */
const DRAWN: Readonly<
  Record<Exclude<IconKind, 'folder'>, { readonly colour: string; readonly path: string }>
> = {
  image: { colour: '#2f9e6b', path: 'M11 27l5-7 4 5 2-3 4 5zM24 18.5a1.5 1.5 0 1 0 0-.1' },
  video: { colour: '#8a5cd6', path: 'M15 17.5v10l8-5z' },
  audio: { colour: '#d6567f', path: 'M14.5 26.5a2 2 0 1 0 2 2v-8l7-1.5v6a2 2 0 1 0 2 2v-11l-11 2.5z' },
  pdf: {
    colour: '#d64545',
    path: 'M13 28c4-3 6-8 5-11s-2-1-1 2 5 6 8 6 2-2-1-2-8 2-11 5z',
  },
  text: { colour: '#5b7db1', path: 'M12 17.5h14M12 21h14M12 24.5h14M12 28h8' },
  code: { colour: '#3d7f93', path: 'M16 18l-4.5 4.5L16 27M22 18l4.5 4.5L22 27' },
  table: { colour: '#3b8f4e', path: 'M12 17.5h14v10H12zM12 21h14M12 24.5h14M17 17.5v10' },
  slides: { colour: '#d0762b', path: 'M12 17.5h14v8H12zM19 25.5v3M16 28.5h6' },
  archive: { colour: '#9a7b2f', path: 'M19 6v3M19 11v3M19 16v3M17 21h4v5h-4z' },
  other: { colour: '#7d8899', path: '' },
};

/** Returns an inline SVG, which needs no further request. */
export function icon(kind: IconKind): Html {
  if (kind === 'folder')
    return html`<svg class="icon" viewBox="0 0 38 38" aria-hidden="true"><path fill="#4a8df0" opacity=".75" d="M4 11a3 3 0 0 1 3-3h8l4 4h12a3 3 0 0 1 3 3v4H4z"/><path fill="#6fa5f7" d="M4 15h30v13a3 3 0 0 1-3 3H7a3 3 0 0 1-3-3z"/></svg>`;
  const { colour, path } = DRAWN[kind];
  return html`<svg class="icon" viewBox="0 0 38 38" aria-hidden="true"><path fill="${colour}" fill-opacity=".13" stroke="${colour}" stroke-width="1.6" stroke-linejoin="round" d="M8 3.5h15l8 8v23H8zM23 3.5v8h8"/><path fill="none" stroke="${colour}" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" d="${path}"/></svg>`;
}

/** Returns the icon of a message: a broken link, or one with a password. */
export function signIcon(sign: 'broken' | 'locked'): Html {
  const path =
    sign === 'locked'
      ? 'M9 17h20v16H9zM13 17v-5a6 6 0 0 1 12 0v5M19 23v4'
      : 'M16 23l6-8M14 18l-4 5a5 5 0 0 0 8 6l2-3M24 20l4-5a5 5 0 0 0-8-6l-2 3M8 10l3 2M30 28l-3-2';
  return html`<svg class="icon" viewBox="0 0 38 38" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="${path}"/></svg>`;
}

/** Returns the icon of one of a folder's two views. */
export function viewIcon(view: 'list' | 'grid'): Html {
  const path =
    view === 'list'
      ? 'M8 5h12M8 12h12M8 19h12M3.5 5h.01M3.5 12h.01M3.5 19h.01'
      : 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z';
  return html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="${path}"/></svg>`;
}
