import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import type { OpenRoute } from './link-proxy.ts';

/** The application's files are served below this path; the page itself at the address of each folder. */
const APP_PATH = '/.davgate/app/';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/**
 * Content-Security-Policy of the page. Scripts are the application's own files, and it talks to this gateway alone. Files
 * of the drive are shown as pictures, sound and text, and never run in it.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "media-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The drive in a browser, as the build has left it. */
export interface WebApp {
  /** The page that a browser gets for a folder. */
  readonly page: { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };
  /** Serves its scripts and styles. They are the same for everybody, so they need no login. */
  readonly serve: OpenRoute;
}

/** Opens the application in `folder`; returns `undefined` when it has not been built. */
export function openWebApp(folder: string): WebApp | undefined {
  const names = new Set(namesIn(folder));
  if (!names.delete('index.html')) return undefined;
  const body = readFileSync(join(folder, 'index.html'));
  const files = new Map<string, AppFile>();
  const fileOf = (name: string): AppFile | undefined => {
    if (!names.has(name)) return undefined;
    const file = files.get(name) ?? readFile(folder, name);
    files.set(name, file);
    return file;
  };
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
      const file = fileOf(path.slice(APP_PATH.length));
      return file
        ? send(exchange, file)
        : exchange.refuse({ status: 404, text: 'davgate has been updated; load the page again.' });
    },
  };
}

interface AppFile {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly gzipped: Buffer;
}

function readFile(folder: string, name: string): AppFile {
  const body = readFileSync(join(folder, name));
  return {
    headers: {
      'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream',
      'X-Content-Type-Options': 'nosniff',
      // The name has a hash of the content.
      'Cache-Control': 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
    },
    body,
    gzipped: gzipSync(body, { level: 9 }),
  };
}

function send(exchange: Exchange, { headers, body, gzipped }: AppFile): Promise<void> {
  const takesGzip = /\bgzip\b/.test(String(exchange.request.headers['accept-encoding'] ?? ''));
  return takesGzip
    ? exchange.answer({ status: 200, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: gzipped })
    : exchange.answer({ status: 200, headers, body });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
