import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { BasePath } from '../util/base-path.ts';
import { html } from '../util/html.ts';
import type { Exchange } from './exchange.ts';
import type { OpenRoute } from './link-proxy.ts';

/** The application's files are served below this path; the page itself at the address of each folder. */
const APP_PATH = '/.davgate/app/';

const PAGE = 'index.html';

/** Stands in the page for the path below which the drive lies. */
const BASE = '{{base}}';

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
 * Opens the application in `folder`; returns `undefined` when it has not been built. All of it is read now, because another
 * build replaces the files while davgate runs.
 */
export function openWebApp(folder: string): WebApp | undefined {
  const names = namesIn(folder);
  if (!names.includes(PAGE)) return undefined;
  const template = readFileSync(join(folder, PAGE), 'utf8');
  const files = new Map(
    names
      .filter((name) => name !== PAGE)
      .map((name) => [name, new AppFile(name, readFileSync(join(folder, name)))]),
  );
  return {
    page(prefix) {
      const { markup } = html`${prefix}`;
      const body = Buffer.from(template.replaceAll(BASE, () => markup));
      return { headers: { ...PAGE_HEADERS, ETag: `"${hashOf(body)}"` }, body };
    },
    serve(exchange) {
      const { path, request } = exchange;
      if (!path.startsWith(APP_PATH) || (request.method !== 'GET' && request.method !== 'HEAD'))
        return undefined;
      const file = files.get(path.slice(APP_PATH.length));
      return file
        ? file.send(exchange)
        : exchange.refuse({ status: 404, text: 'davgate has been updated; load the page again.' });
    },
  };
}

class AppFile {
  readonly #headers: Readonly<Record<string, string>>;
  #gzipped: Buffer | undefined;

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

  send(exchange: Exchange): Promise<void> {
    const takesGzip = /\bgzip\b/.test(String(exchange.request.headers['accept-encoding'] ?? ''));
    if (!takesGzip) return exchange.answer({ status: 200, headers: this.#headers, body: this.body });
    this.#gzipped ??= gzipSync(this.body, { level: 9 });
    const headers = { ...this.#headers, 'Content-Encoding': 'gzip' };
    return exchange.answer({ status: 200, headers, body: this.#gzipped });
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
