import { createHash } from 'node:crypto';
import { type Html, html, htmlDocument } from '../../util/html.ts';
import { sizeText } from '../../util/size-text.ts';

/** The content of a folder's page in a browser. */
export interface DrivePage {
  /** Decoded: `/Photos/2026`. */
  readonly path: string;
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

const STYLE = `
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .35rem .5rem; text-align: left; border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
td:first-child { overflow-wrap: anywhere; }
td + td, th + th { white-space: nowrap; text-align: right; }
tr.folder a { font-weight: 600; }
`;

/** Content-Security-Policy of the page: no scripts, no resources, and the one style sheet. */
export const DRIVE_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Renders the page: folders first, then files, each ordered by name. */
export function drivePage({ path, items }: DrivePage): string {
  const sorted = [...items].sort(inOrder);
  const rows = sorted.slice(0, ITEMS_MAX).map(row);
  const isCut = sorted.length > ITEMS_MAX;
  const body = html`<body>
<h1>${path}</h1>
${path === '/' ? undefined : html`<p><a href="${parentUrl(path)}">Up one folder</a></p>`}
<table>
<tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Changed</th></tr>
${rows}</table>
${rows.length === 0 ? html`<p>This folder is empty.</p>` : undefined}
${isCut ? html`<p>Showing ${ITEMS_MAX} of ${items.length} entries; mount the drive to see all of them.</p>` : undefined}
</body>`;
  return htmlDocument({ title: path, style: STYLE, body });
}

function inOrder(one: DrivePageItem, other: DrivePageItem): number {
  if (one.kind !== other.kind) return one.kind === 'folder' ? -1 : 1;
  return one.name < other.name ? -1 : 1;
}

function row({ kind, name, url, sizeBytes, modifiedMs }: DrivePageItem): Html {
  const slash = kind === 'folder' ? '/' : '';
  return html`<tr class="${kind}"><td><a href="${url}">${name}${slash}</a></td><td>${
    sizeBytes === undefined ? undefined : sizeText(sizeBytes)
  }</td><td>${modifiedMs === undefined ? undefined : timeText(modifiedMs)}</td></tr>
`;
}

/** Returns an absolute path, because the page's own URL may lack the trailing slash that `..` needs. */
function parentUrl(path: string): string {
  const names = path.split('/').slice(1, -1);
  return `/${names.map((name) => `${encodeURIComponent(name)}/`).join('')}`;
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
