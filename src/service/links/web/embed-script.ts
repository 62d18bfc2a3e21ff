/**
 * The script at `/embed.js`, which other sites' pages include: it shows a preview of a shared link in a frame. It is a
 * text here because it runs in a browser.
 *
 * The frame is sandboxed, so it has no origin (`null`). Its messages are accepted only from its own window and with the
 * secret that it was given; it answers only the page that gave it the secret.
 */
export const EMBED_SCRIPT = `(() => {
  'use strict';
  const service = document.currentScript.src;
  const HEIGHT_PX_MIN = 64;
  const HEIGHT_PX_MAX = 800;
  const CHOICES = {
    zoom: ['best', 'fit', 'actual'],
    view: ['list', 'grid'],
    headerSize: ['normal', 'small'],
  };
  const previews = new Map();

  function mount(element, options) {
    if (!(element instanceof Element)) throw new TypeError('DavgateEmbed.mount: the first argument is no element');
    const address = frameAddress(options);
    unmount(element);
    const frame = document.createElement('iframe');
    frame.sandbox = 'allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads';
    frame.allow = 'fullscreen';
    frame.referrerPolicy = 'no-referrer';
    frame.title = 'Preview of a shared file or folder';
    frame.style.cssText = 'display:block;box-sizing:border-box;width:100%;height:240px;' +
      'border:1px solid rgba(128,140,155,.45);border-radius:10px';
    const secret = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-');
    frame.addEventListener('load', () => {
      // A frame without an origin can only be addressed as *; all it gets is the secret to repeat.
      frame.contentWindow?.postMessage({ davgateEmbed: secret }, '*');
    });
    frame.src = address;
    const isLink = element instanceof HTMLAnchorElement;
    previews.set(element, { frame, secret, isLink });
    if (isLink) {
      element.hidden = true;
      element.after(frame);
    } else element.append(frame);
  }

  function unmount(element) {
    const preview = previews.get(element);
    if (!preview) return;
    previews.delete(element);
    preview.frame.remove();
    if (preview.isLink) element.hidden = false;
  }

  function frameAddress({ link, file = {}, folder = {} } = {}) {
    if (typeof link !== 'string' || !URL.canParse(link, document.baseURI))
      throw new TypeError('DavgateEmbed.mount: "link" must be the address of a shared link');
    const address = new URL('embed', service);
    address.searchParams.set('link', new URL(link, document.baseURI).href);
    const chosen = { zoom: file.zoom, view: folder.view, headerSize: folder.headerSize };
    for (const [name, value] of Object.entries(chosen)) {
      if (value === undefined) continue;
      if (!CHOICES[name].includes(value))
        throw new TypeError('DavgateEmbed.mount: "' + name + '" must be one of ' + CHOICES[name].join(', '));
      address.searchParams.set(name, value);
    }
    return address.href;
  }

  addEventListener('message', ({ source, origin, data }) => {
    for (const { frame, secret } of previews.values()) {
      if (source !== frame.contentWindow || origin !== 'null' || data?.davgateEmbed !== secret) continue;
      const heightPx = Number(data.heightPx);
      if (!(heightPx > 0)) return;
      // Two pixels for the border.
      frame.style.height = Math.min(Math.max(Math.ceil(heightPx) + 2, HEIGHT_PX_MIN), HEIGHT_PX_MAX) + 'px';
    }
  });

  function mountLinks() {
    for (const link of document.querySelectorAll('a.davgate-embed[href]')) {
      if (previews.has(link)) continue;
      const { zoom, view, headerSize } = link.dataset;
      try {
        mount(link, { link: link.href, file: { zoom }, folder: { view, headerSize } });
      } catch (error) {
        // The link itself stays usable.
        console.error(error);
      }
    }
  }

  globalThis.DavgateEmbed = Object.freeze({ mount, unmount });
  if (document.readyState === 'loading') addEventListener('DOMContentLoaded', mountLinks);
  else mountLinks();
})();
`;
