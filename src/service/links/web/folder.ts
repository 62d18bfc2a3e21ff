import { type Html, html } from '../../../util/html.ts';
import { sizeText } from '../../../util/size-text.ts';
import { icon, iconKindOf } from './icons.ts';

export type FolderView = 'list' | 'grid';

/** What a folder holds. */
export interface FolderItem {
  readonly kind: 'file' | 'folder';
  readonly name: string;
  readonly url: string;
  /** Of files. */
  readonly sizeBytes?: number;
  readonly modifiedMs?: number;
  /** A small picture of it, if there can be one. */
  readonly thumbnailUrl?: string;
}

/** Folders first, each kind in the order in which people count: 2 before 10. */
export function folderItems(items: readonly FolderItem[], view: FolderView): Html {
  if (items.length === 0) return html`<div class="sheet"><p class="empty">This folder is empty.</p></div>`;
  return html`<div class="sheet"><ul class="items ${view}">
${[...items].sort(folderOrder()).map(item)}</ul></div>`;
}

/** Its collator is made for each listing: at the start of davgate the first one takes 20 ms, to load its rules. */
function folderOrder(): (one: FolderItem, other: FolderItem) => number {
  const names = new Intl.Collator('en', { numeric: true });
  return (one, other) => {
    if (one.kind !== other.kind) return one.kind === 'folder' ? -1 : 1;
    return names.compare(one.name, other.name);
  };
}

function item({ kind, name, url, sizeBytes, modifiedMs, thumbnailUrl }: FolderItem): Html {
  const drawing = icon(kind === 'folder' ? 'folder' : iconKindOf(name));
  // The icon stays behind it, for an image that cannot be shown.
  const picture =
    thumbnailUrl === undefined ? undefined : html`<img src="${thumbnailUrl}" alt="" loading="lazy">`;
  return html`<li class="${kind}"><span class="look">${drawing}${picture}</span><a href="${url}">${name}</a><span class="size">${
    sizeBytes === undefined ? undefined : sizeText(sizeBytes)
  }</span>${modifiedMs === undefined ? html`<time></time>` : day(modifiedMs)}</li>
`;
}

function day(ms: number): Html {
  const text = new Date(ms).toISOString();
  return html`<time datetime="${text}">${text.slice(0, 10)}</time>`;
}
