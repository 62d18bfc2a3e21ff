import { hashSource } from '../../../util/content-policy.ts';
import { type Html, html, htmlDocument } from '../../../util/html.ts';
import { ICON } from '../../../util/look.ts';
import { STYLE } from './style.ts';

/**
 * The script in a frame of `/embed.js`, which reports the frame's height to the page around it. That page learns nothing
 * else, and no other page receives the message.
 */
const FRAME_SCRIPT = `(() => {
  'use strict';
  let listener;
  const tell = () => {
    if (!listener) return;
    const heightPx = document.body.getBoundingClientRect().height;
    // A page that was opened from a file has no origin to address.
    const target = listener.origin === 'null' ? '*' : listener.origin;
    parent.postMessage({ davgateEmbed: listener.secret, heightPx }, target);
  };
  addEventListener('message', ({ source, origin, data }) => {
    if (source !== parent || parent === window || typeof data?.davgateEmbed !== 'string') return;
    if (listener && origin !== listener.origin) return;
    listener = { origin, secret: data.davgateEmbed };
    tell();
  });
  new ResizeObserver(tell).observe(document.body);
})();
`;

/** Content-Security-Policy directives of every link page: its style sheet, and what this host serves. */
const SHOW_ONLY = [
  "default-src 'none'",
  `style-src ${hashSource(STYLE)}`,
  "img-src 'self' data:",
  "media-src 'self'",
  "base-uri 'none'",
];

/** Content-Security-Policy of the pages at a link's own URL: no scripts, whatever a name contains, and no frames. */
export const LINK_PAGE_POLICY = [
  ...SHOW_ONLY,
  "object-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Content-Security-Policy of pages in other sites' frames. They are sandboxed even without a frame, and so have no
 * origin and cannot reach the service's. Their only script reports the height.
 */
export const FRAME_POLICY = [
  'sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads',
  ...SHOW_ONLY,
  `script-src ${hashSource(FRAME_SCRIPT)}`,
  "form-action 'none'",
  'frame-ancestors *',
].join('; ');

/** Returns a whole page around `content`, or one for a frame in another site's page. */
export function shell(title: string, content: Html, place: 'page' | 'frame' = 'page'): string {
  // The policy contains the hash of exactly these bytes, which contain no character that needs escaping.
  const script = place === 'frame' ? { markup: `<script>${FRAME_SCRIPT}</script>` } : undefined;
  return htmlDocument({
    title,
    style: STYLE,
    head: html`<link rel="icon" href="${ICON}">\n`,
    body: html`<body class="${place}">
${content}
${script}</body>`,
  });
}
