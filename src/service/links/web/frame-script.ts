/**
 * The script in a frame of `/embed.js`: it tells the page around it how high it is. Whoever has framed it is told no more
 * than that, and nobody else is told anything.
 */
export const FRAME_SCRIPT = `(() => {
  'use strict';
  let listener;
  const tell = () => {
    if (!listener) return;
    const heightPx = document.body.getBoundingClientRect().height;
    // A page from a file has no origin that could be named.
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
