import { hashSource } from '../../util/content-policy.ts';
import { type Html, html, htmlDocument } from '../../util/html.ts';
import { ICON, LOOK } from '../../util/look.ts';
import { sizeText } from '../../util/size-text.ts';

/** The content of a folder's page in a browser. */
export interface DrivePage {
  /** Decoded: `/Photos/2026`. */
  readonly path: string;
  /** Absolute, because the page's own URL may lack the trailing slash that `..` needs. */
  readonly parentUrl: string;
  readonly items: readonly DrivePageItem[];
}

interface DrivePageItem {
  readonly kind: 'file' | 'folder';
  readonly name: string;
  /** Percent-encoded. */
  readonly url: string;
  /** Present for files. */
  readonly sizeBytes?: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs?: number;
}

/** Maximum number of rows; each takes about 200 bytes. */
const ITEMS_MAX = 10_000;

const STYLE = `${LOOK}
header { padding: .8rem 1.5rem; border-bottom: 1px solid var(--line); background: var(--paper); }
header p { margin: 0; font-size: .875rem; }
h1 { margin: 0; font-size: 1.15rem; line-height: 1.3; overflow-wrap: anywhere; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
.sheet { border: 1px solid var(--line); border-radius: 10px; background: var(--paper); }
table { width: 100%; border-collapse: collapse; }
th { color: var(--soft); font-size: .875rem; font-weight: 600; }
th, td { padding: .6rem 1.25rem; text-align: left; }
td { border-top: 1px solid var(--line); }
td:first-child { overflow-wrap: anywhere; }
td + td, th + th { color: var(--soft); font-size: .875rem; text-align: right; white-space: nowrap; }
td a { color: var(--ink); text-decoration: none; }
td a:hover { color: var(--accent); text-decoration: underline; }
tr.folder a { font-weight: 600; }
.note { margin: 0; padding: 1rem 1.25rem; color: var(--soft); }
@media (max-width: 40rem) { header { padding: .75rem 1rem; } main { padding: 1rem .75rem; } th, td { padding: .6rem .75rem; } :is(th, td):nth-child(3) { display: none; } }
`;

/** Content-Security-Policy of the page: no scripts, no resources, and the one style sheet. */
export const DRIVE_PAGE_POLICY = [
  "default-src 'none'",
  `style-src ${hashSource(STYLE)}`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Renders the page: folders first, then files, each ordered by name. */
export function drivePage({ path, parentUrl, items }: DrivePage): string {
  const sorted = [...items].sort(inOrder);
  const rows = sorted.slice(0, ITEMS_MAX).map(row);
  const isCut = sorted.length > ITEMS_MAX;
  const body = html`<body>
<header>
${path === '/' ? undefined : html`<p><a href="${href(parentUrl)}">Up one folder</a></p>\n`}<h1>${path}</h1>
</header>
<main><div class="sheet">
<table>
<tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Changed</th></tr>
${rows}</table>
${rows.length === 0 ? html`<p class="note">This folder is empty.</p>` : undefined}
${isCut ? html`<p class="note">Showing ${ITEMS_MAX} of ${items.length} entries; mount the drive to see all of them.</p>` : undefined}
</div></main>
</body>`;
  const head = html`<link rel="icon" href="${ICON}">\n`;
  return htmlDocument({ title: path, style: STYLE, head, body });
}

function inOrder(one: DrivePageItem, other: DrivePageItem): number {
  if (one.kind !== other.kind) return one.kind === 'folder' ? -1 : 1;
  return one.name < other.name ? -1 : 1;
}

function row({ kind, name, url, sizeBytes, modifiedMs }: DrivePageItem): Html {
  const slash = kind === 'folder' ? '/' : '';
  return html`<tr class="${kind}"><td><a href="${href(url)}">${name}${slash}</a></td><td>${
    sizeBytes === undefined ? undefined : sizeText(sizeBytes)
  }</td><td>${modifiedMs === undefined ? undefined : timeText(modifiedMs)}</td></tr>
`;
}

/** lftp lists folders by this page, and reads the character reference of an apostrophe in an `href` as `&`. */
function href(url: string): string {
  return url.replaceAll("'", '%27');
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
