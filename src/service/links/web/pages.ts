import { type Html, html } from '../../../util/html.ts';
import { sizeText } from '../../../util/size-text.ts';
import { type FolderItem, type FolderView, folderItems } from './folder.ts';
import { icon, iconKindOf, signIcon, viewIcon } from './icons.ts';
import { type Frame, previewOf, type Shown } from './preview.ts';
import { shell } from './shell.ts';

/** A folder above what is shown, up to the linked one. */
export interface Crumb {
  readonly name: string;
  readonly url: string;
}

interface Common {
  readonly name: string;
  /** From the linked folder down; none for what the link itself leads to. */
  readonly above: readonly Crumb[];
  /** Set for a page in a frame of another site's page. */
  readonly frame?: Frame;
  /** The whole of it, a folder as an archive; absent where the owner does not let it be downloaded. */
  readonly downloadUrl?: string;
}

/** A file at the end of a shared link. */
export interface FilePage extends Common, Shown {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** A folder at the end of a shared link, or below it. */
export interface FolderPage extends Common {
  readonly items: readonly FolderItem[];
  /** Whether there are more than are shown. */
  readonly isCut: boolean;
  readonly view: FolderView;
  /** The same page in the two views. */
  readonly viewUrls: Readonly<Record<FolderView, string>>;
}

/** The page of a shared file: what it is, a look at it, and a way to get it. */
export function filePage(file: FilePage): string {
  const actions = html`${open(file)}${download(file, 'Download')}`;
  const isSheet = file.preview.kind === 'text';
  const content = html`${header(icon(iconKindOf(file.name)), file, fileFacts(file), actions)}
${main(file, isSheet, previewOf(file))}`;
  return shell(file.name, content, placeOf(file));
}

/** The page of a shared folder, or of one inside it. */
export function folderPage(folder: FolderPage): string {
  const actions = html`${views(folder)}${folder.frame && openAlone(folder.frame)}${download(folder, 'Download all')}`;
  const content = html`${header(icon('folder'), folder, folderFacts(folder), actions)}
${main(
  folder,
  true,
  html`${folderItems(folder.items, folder.view)}
${folder.isCut ? html`<p class="note">There is more in this folder than one page can show.</p>` : undefined}`,
)}`;
  return shell(folder.name, content, placeOf(folder));
}

/** In a frame a sheet has no room around it. */
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

/** A page that only says something: why there is nothing to see. */
export function messagePage(title: string, text: string, place: 'page' | 'frame' = 'page'): string {
  const card = html`<div class="card">${signIcon('broken')}<h1>${title}</h1><p>${text}</p></div>`;
  return shell(title, html`<main>${card}</main>`, place);
}

/** In a frame no password is asked for: whose page is around it cannot be seen there. */
export function lockedFrame(pageUrl: string): string {
  const title = 'This link has a password';
  return shell(
    title,
    html`<main><div class="card">${signIcon('locked')}
<h1>${title}</h1>
<p>It is asked for on the link’s own page.</p>
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

/** In UTC, as a page without a script knows no other time. */
function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
