import { type Html, html } from '../../../util/html.ts';
import { sizeText } from '../../../util/size-text.ts';
import { type FolderItem, type FolderView, folderItems } from './folder.ts';
import { icon, iconKindOf, signIcon, viewIcon } from './icons.ts';
import { type Frame, previewOf, type Shown } from './preview.ts';
import { shell } from './shell.ts';

/** A folder above the item, up to the linked one. */
export interface Crumb {
  readonly name: string;
  readonly url: string;
}

interface Common {
  readonly name: string;
  /** From the linked folder down; empty for the linked item itself. */
  readonly above: readonly Crumb[];
  /** Set for a page in a frame of another site's page. */
  readonly frame?: Frame;
  /** URL of the whole item, a folder as an archive; absent when the owner has disabled downloads. */
  readonly downloadUrl?: string;
}

/** The page of a shared file, or of a file in a shared folder. */
export interface FilePage extends Common, Shown {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** The page of a shared folder, or of a folder inside it. */
export interface FolderPage extends Common {
  readonly items: readonly FolderItem[];
  /** Whether there are more items than the page shows. */
  readonly isCut: boolean;
  readonly view: FolderView;
  /** URLs of the same page in the two views. */
  readonly viewUrls: Readonly<Record<FolderView, string>>;
}

/** Returns the page of a shared file, with a preview and a download. */
export function filePage(file: FilePage): string {
  const actions = html`${open(file)}${download(file, 'Download')}`;
  const isSheet = file.preview.kind === 'text';
  const content = html`${header(icon(iconKindOf(file.name)), file, fileFacts(file), actions)}
${main(file, isSheet, previewOf(file))}`;
  return shell(file.name, content, placeOf(file));
}

/** Returns the page of a shared folder, or of one inside it. */
export function folderPage(folder: FolderPage): string {
  const actions = html`${views(folder)}${folder.frame && openAlone(folder.frame)}${download(folder, 'Download all')}`;
  const content = html`${header(icon('folder'), folder, folderFacts(folder), actions)}
${main(
  folder,
  true,
  html`${folderItems(folder.items, folder.view)}
${folder.isCut ? html`<p class="note">This folder has more items than one page can show.</p>` : undefined}`,
)}`;
  return shell(folder.name, content, placeOf(folder));
}

/** Wraps the content; in a frame there is no margin around a sheet. */
function main({ frame }: Common, isSheet: boolean, content: Html): Html {
  return html`<main${frame && isSheet ? html` class="flush"` : undefined}>
${content}
</main>`;
}

function placeOf({ frame }: Common): 'page' | 'frame' {
  return frame ? 'frame' : 'page';
}

function open(file: FilePage): Html {
  return file.frame ? openAlone(file.frame) : html`<a class="button" href="${file.showUrl}">Open</a>`;
}

function openAlone({ pageUrl }: Frame): Html {
  return html`<a class="button" href="${pageUrl}" target="_blank" rel="noopener">Open</a>`;
}

/** Returns the page that asks for a link's password; `problem` says why the last one was refused. */
export function passwordPage(problem?: string): string {
  return shell(
    'A password is needed',
    html`<main><div class="card">${signIcon('locked')}
<h1>This link has a password</h1>
<p>Ask the person who sent you the link.</p>
<form method="post">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="off" required autofocus>
${problem === undefined ? undefined : html`<p class="problem" role="alert">${problem}</p>`}
<button class="button primary">Open</button>
</form>
</div></main>`,
  );
}

/** Returns a page with only a message: why there is nothing to see. */
export function messagePage(title: string, text: string, place: 'page' | 'frame' = 'page'): string {
  const card = html`<div class="card">${signIcon('broken')}<h1>${title}</h1><p>${text}</p></div>`;
  return shell(title, html`<main>${card}</main>`, place);
}

/**
 * Returns the frame of a link with a password, which leads to the link's page. A frame never asks for a password,
 * because its visitor cannot see whose page is around it.
 */
export function lockedFrame(pageUrl: string): string {
  const title = 'This link has a password';
  return shell(
    title,
    html`<main><div class="card">${signIcon('locked')}
<h1>${title}</h1>
<p>Enter it on the link’s own page.</p>
<p class="actions"><a class="button primary" href="${pageUrl}" target="_blank" rel="noopener">Open the link</a></p>
</div></main>`,
    'frame',
  );
}

function header(drawing: Html, { name, above, frame }: Common, facts: string, actions: Html): Html {
  return html`<header class="${frame?.headerSize ?? 'normal'}">
<div class="title">${drawing}<div>
${above.length > 0 ? html`<nav class="crumbs" aria-label="Folders above">${above.map(crumb)}</nav>` : undefined}
<h1>${name}</h1>
<p class="facts">${facts}</p>
</div></div>
<div class="actions">${actions}</div>
</header>`;
}

function crumb({ name, url }: Crumb): Html {
  return html`<a href="${url}">${name}</a> / `;
}

function views({ view, viewUrls }: FolderPage): Html {
  const one = (name: FolderView, label: string) =>
    html`<a href="${viewUrls[name]}"${
      view === name ? html` aria-current="true"` : undefined
    } title="${label}">${viewIcon(name)}<span class="hidden">${label}</span></a>`;
  return html`<nav class="views" aria-label="View">${one('list', 'List')}${one('grid', 'Grid')}</nav>`;
}

function download({ downloadUrl }: Common, words: string): Html | undefined {
  return downloadUrl === undefined
    ? undefined
    : html`<a class="button primary" href="${downloadUrl}">${words}</a>`;
}

function fileFacts({ sizeBytes, modifiedMs }: FilePage): string {
  return `${sizeText(sizeBytes)} · changed ${dayText(modifiedMs)}`;
}

function folderFacts({ items, isCut }: FolderPage): string {
  const more = isCut ? 'at least ' : '';
  return items.length === 1 ? '1 item' : `${more}${items.length} items`;
}

/** Formats a day in UTC, because a page without a script does not know the visitor's time zone. */
function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
