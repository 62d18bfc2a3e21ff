import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { BasePath } from '../util/base-path.ts';
import { type ContentCoding, codingFor, compressedOnce } from '../util/content-coding.ts';
import { html } from '../util/html.ts';
import { ICON, OWN_LOOK, type PageLook } from '../util/look.ts';
import type { Exchange } from './exchange.ts';
import type { OpenRoute } from './link-proxy.ts';

/** The application's files are served below this path; the page itself at the address of each folder. */
const APP_PATH = '/.davgate/app/';

const PAGE = 'index.html';

/** The page of an upload link, whose token is in the fragment of its address. */
export const SEND_PAGE = '/.davgate/send';
const SEND_FILE = 'send.html';

/** Stands in the page for the path below which the drive lies. */
const BASE = '{{base}}';

/** Stand in the page for the name of the drive and the address of the icon. */
const NAME = '{{name}}';
const LOGO = '{{logo}}';

const STYLE_SHEET = /\bstyle-\w+\.css\b/g;

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/**
 * Content-Security-Policy of the page. Scripts are the application's own files, and it talks to this gateway alone. Files
 * of the drive are shown as pictures, sound and text, and never run in it. Frames are for the browser's own viewer of PDFs,
 * and for the form that downloads archives.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "media-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
} as const;

/** The drive in a browser, as the build has left it. */
export interface WebApp {
  /** Returns the page that a browser gets for a folder of a drive below `prefix`. */
  page(prefix: BasePath): { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };
  /** Serves its scripts and styles. They are the same for everybody, so they need no login. */
  readonly serve: OpenRoute;
}

/**
 * Opens the application in `folder`, with the look of this davgate; returns `undefined` when it has not been built. All of it
 * is read now, because another build replaces the files while davgate runs.
 */
export function openWebApp(folder: string, look: PageLook = OWN_LOOK): WebApp | undefined {
  const names = namesIn(folder);
  if (!names.includes(PAGE)) return undefined;
  const pageIn = (name: string) => withLook(readFileSync(join(folder, name), 'utf8'), look);
  const template = pageIn(PAGE);
  const sendTemplate = names.includes(SEND_FILE) ? pageIn(SEND_FILE) : '';
  const files = new Map(
    names
      .filter((name) => !name.endsWith('.html'))
      .map((name) => [
        lookName(name, look),
        new AppFile(name, withAccent(name, readFileSync(join(folder, name)), look)),
      ]),
  );
  return {
    page: (prefix) => pageOf(template, prefix),
    serve(exchange) {
      const { path, prefix, request } = exchange;
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
      if (path === SEND_PAGE) return exchange.answer({ status: 200, ...pageOf(sendTemplate, prefix) });
      if (!path.startsWith(APP_PATH)) return undefined;
      const file = files.get(path.slice(APP_PATH.length));
      return file
        ? file.send(exchange)
        : exchange.refuse({ status: 404, text: 'davgate has been updated; load the page again.' });
    },
  };
}

function pageOf(template: string, prefix: BasePath): ReturnType<WebApp['page']> {
  const { markup } = html`${prefix}`;
  const body = Buffer.from(template.replaceAll(BASE, () => markup));
  return { headers: { ...PAGE_HEADERS, ETag: `"${hashOf(body)}"` }, body };
}

/** Returns a page with the name, the icon and the style sheet of this davgate. */
function withLook(page: string, look: PageLook): string {
  const { name = '', logo = ICON } = look;
  return page
    .replaceAll(NAME, () => html`${name}`.markup)
    .replaceAll(LOGO, () => html`${logo}`.markup)
    .replaceAll(STYLE_SHEET, (sheet) => lookName(sheet, look));
}

/** Returns the name under which a file is served: browsers keep a style sheet, so that with another accent has another name. */
function lookName(name: string, { accentStyle }: PageLook): string {
  if (accentStyle === '' || extname(name) !== '.css') return name;
  return name.replace(/\.css$/, `-${hashOf(Buffer.from(accentStyle)).slice(0, 8)}.css`);
}

function withAccent(name: string, body: Buffer, { accentStyle }: PageLook): Buffer {
  return extname(name) === '.css' ? Buffer.concat([body, Buffer.from(accentStyle)]) : body;
}

class AppFile {
  readonly #headers: Readonly<Record<string, string>>;
  readonly #compressed = new Map<ContentCoding, Promise<Buffer>>();

  constructor(
    name: string,
    private readonly body: Buffer,
  ) {
    this.#headers = {
      'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream',
      'X-Content-Type-Options': 'nosniff',
      // The name has a hash of the content.
      'Cache-Control': 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
    };
  }

  async send(exchange: Exchange): Promise<void> {
    const coding = codingFor(exchange.request.headers);
    if (!coding) return exchange.answer({ status: 200, headers: this.#headers, body: this.body });
    const headers = { ...this.#headers, 'Content-Encoding': coding };
    return exchange.answer({ status: 200, headers, body: await this.#compressedBy(coding) });
  }

  #compressedBy(coding: ContentCoding): Promise<Buffer> {
    const compressing = this.#compressed.get(coding) ?? compressedOnce(this.body, coding);
    this.#compressed.set(coding, compressing);
    return compressing;
  }
}

function hashOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex').slice(0, 32);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
