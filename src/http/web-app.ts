import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import type { OpenRoute } from './link-proxy.ts';

/** The application's files are served below this path; the page itself at the address of each folder. */
const APP_PATH = '/.davgate/app/';

const PAGE = 'index.html';

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

/** The drive in a browser, as the build has left it. */
export interface WebApp {
  /** The page that a browser gets for a folder. */
  readonly page: { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };
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
  const body = readFileSync(join(folder, PAGE));
  const files = new Map(
    names
      .filter((name) => name !== PAGE)
      .map((name) => [name, new AppFile(name, readFileSync(join(folder, name)))]),
  );
  return {
    page: {
      headers: {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': POLICY,
        'X-Content-Type-Options': 'nosniff',
        'Referrer-Policy': 'same-origin',
        'Cache-Control': 'no-cache',
        ETag: `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"`,
      },
      body,
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

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
