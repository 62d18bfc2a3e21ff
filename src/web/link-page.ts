import { createHash } from 'node:crypto';
import { type Html, html } from './html.ts';
import { STYLE } from './link-style.ts';
import { sizeText } from './size-text.ts';

/** A file at the end of a shared link. Addresses are relative to the page. */
export interface FilePage {
  readonly name: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** How a browser can show it inside the page; `none` where it would only offer to save it. */
  readonly preview: 'image' | 'audio' | 'video' | 'none';
  readonly showUrl: string;
  /** Absent where the owner does not let it be downloaded. */
  readonly downloadUrl?: string;
}

interface FolderPageItem {
  readonly kind: 'file' | 'folder';
  readonly name: string;
  readonly url: string;
  /** Of files. */
  readonly sizeBytes?: number;
}

export interface FolderPage {
  readonly name: string;
  readonly items: readonly FolderPageItem[];
  /** Whether there are more than are shown. */
  readonly isCut: boolean;
  /** Absent at the link's own folder. */
  readonly parentUrl?: string;
  /** All of it in one archive; absent where the owner does not let it be downloaded. */
  readonly downloadUrl?: string;
}

/**
 * What the browser is allowed to do on these pages: show them, their one style sheet, and media from the
 * same host. No script runs, whatever a name may contain, and no other site can frame them.
 */
export const LINK_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "img-src 'self'",
  "media-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The page of a shared file: what it is, a look at it, and a way to get it. */
export function filePage(file: FilePage): string {
  return page(
    file.name,
    html`<p class="badge">${extensionOf(file.name)}</p>
<h1>${file.name}</h1>
<p class="facts">${sizeText(file.sizeBytes)} · changed ${dayText(file.modifiedMs)}</p>
${previewOf(file)}
<p class="actions">${
      file.downloadUrl === undefined
        ? undefined
        : html`<a class="primary" href="${file.downloadUrl}">Download</a> `
    }<a href="${file.showUrl}">Open in the browser</a></p>`,
  );
}

/** The page of a shared folder, or of one inside it. */
export function folderPage(folder: FolderPage): string {
  const rows = folder.items.map(
    (item) => html`<li class="${item.kind}"><a href="${item.url}">${item.name}</a><span>${
      item.sizeBytes === undefined ? undefined : sizeText(item.sizeBytes)
    }</span></li>
`,
  );
  const list = rows.length > 0 ? html`<ul>${rows}</ul>` : html`<p class="facts">This folder is empty.</p>`;
  return page(
    folder.name,
    html`<p class="badge">Folder</p>
<h1>${folder.name}</h1>
${folder.parentUrl === undefined ? undefined : html`<p><a href="${folder.parentUrl}">Up one folder</a></p>`}
${
  folder.downloadUrl === undefined
    ? undefined
    : html`<p class="actions"><a class="primary" href="${folder.downloadUrl}">Download all</a></p>`
}
${list}
${folder.isCut ? html`<p class="facts">There is more in this folder than one page can show.</p>` : undefined}`,
  );
}

/** Asks for a link's password; `problem` says what was wrong with the last one. */
export function passwordPage(problem?: string): string {
  return page(
    'A password is needed',
    html`<h1>This link has a password</h1>
<p class="facts">Whoever sent you the link can tell you.</p>
<form method="post">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="off" required autofocus>
${problem === undefined ? undefined : html`<p class="problem" role="alert">${problem}</p>`}
<button class="primary">Open</button>
</form>`,
  );
}

/** A page that only says something. */
export function messagePage(title: string, text: string): string {
  return page(title, html`<h1>${title}</h1><p class="facts">${text}</p>`);
}

function page(title: string, content: Html): string {
  // The style sheet is ours, without a character to escape; its hash in the policy must be of these bytes.
  const style = { markup: `<style>${STYLE}</style>` };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
${style}
</head>
<body><main>
${content}
</main></body>
</html>
`.markup;
}

function previewOf({ preview, showUrl, name }: FilePage): Html | undefined {
  switch (preview) {
    case 'image':
      return html`<img class="preview" src="${showUrl}" alt="${name}">`;
    case 'audio':
      return html`<audio class="preview" src="${showUrl}" controls preload="metadata"></audio>`;
    case 'video':
      return html`<video class="preview" src="${showUrl}" controls preload="metadata"></video>`;
    case 'none':
      return undefined;
  }
}

const EXTENSION_MAX_CHARACTERS = 5;

function extensionOf(name: string): string {
  const extension = /[^.]\.([^.]+)$/.exec(name)?.[1] ?? '';
  return extension !== '' && extension.length <= EXTENSION_MAX_CHARACTERS ? extension.toUpperCase() : 'File';
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
