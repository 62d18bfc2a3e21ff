import { type Html, html } from '../html.ts';
import { sizeText } from '../size-text.ts';
import { type FolderItem, type FolderView, folderItems } from './folder.ts';
import { icon, iconKindOf, signIcon, viewIcon } from './icons.ts';
import { previewOf, type Shown } from './preview.ts';
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
  return shell(file.name, fileContent(file));
}

function fileContent(file: FilePage): Html {
  const open = html`<a class="button" href="${file.showUrl}">Open</a>`;
  return html`${header(icon(iconKindOf(file.name)), file, fileFacts(file), html`${open}${download(file, 'Download')}`)}
<main>
${previewOf(file)}
</main>`;
}

/** The page of a shared folder, or of one inside it. */
export function folderPage(folder: FolderPage): string {
  return shell(folder.name, folderContent(folder));
}

function folderContent(folder: FolderPage): Html {
  const actions = html`${views(folder)}${download(folder, 'Download all')}`;
  return html`${header(icon('folder'), folder, folderFacts(folder), actions)}
<main>
${folderItems(folder.items, folder.view)}
${folder.isCut ? html`<p class="note">There is more in this folder than one page can show.</p>` : undefined}
</main>`;
}

/** Asks for a link's password; `problem` says what was wrong with the last one. */
export function passwordPage(problem?: string): string {
  return shell(
    'A password is needed',
    html`<main><div class="card">${signIcon('locked')}
<h1>This link has a password</h1>
<p>Whoever sent you the link can tell you.</p>
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
export function messagePage(title: string, text: string): string {
  return shell(
    title,
    html`<main><div class="card">${signIcon('broken')}<h1>${title}</h1><p>${text}</p></div></main>`,
  );
}

function header(drawing: Html, { name, above }: Common, facts: string, actions: Html): Html {
  return html`<header>
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
