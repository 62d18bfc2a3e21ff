import { type Html, html } from '../../../util/html.ts';
import { sizeText } from '../../../util/size-text.ts';
import { icon, iconKindOf } from './icons.ts';
import type { RenderedText } from './text.ts';

/** Ways of showing a file inside a page. */
export type Preview =
  | { readonly kind: 'image' | 'audio' | 'video' | 'pdf' | 'empty' | 'none' }
  | {
      readonly kind: 'text';
      readonly text: RenderedText;
      /** Size of the beginning that `text` shows, in bytes, if it is not all. */
      readonly cutAtBytes?: number | undefined;
    };

/** `best`: an image at its own size, or smaller to fit; `fit`: as wide as the page; `actual`: its own size. */
export type Zoom = 'best' | 'fit' | 'actual';

/** Options of a page in a frame. */
export interface Frame {
  readonly headerSize: 'normal' | 'small';
  /** URL of the same page outside of the frame. */
  readonly pageUrl: string;
}

/** A file and how its page shows it. */
export interface Shown {
  readonly name: string;
  readonly preview: Preview;
  /** URL of the bytes with their media type. */
  readonly showUrl: string;
  readonly zoom: Zoom;
  /** Present in a frame of another site's page. */
  readonly frame?: Frame;
}

/** Returns the preview of a file. */
export function previewOf(file: Shown): Html {
  const { name, preview, showUrl } = file;
  switch (preview.kind) {
    case 'image':
      return image(file);
    case 'audio':
      return html`<div class="sound">${icon('audio')}<audio src="${showUrl}" controls preload="metadata"></audio></div>`;
    case 'video':
      return html`<video src="${showUrl}" controls playsinline preload="metadata"></video>`;
    case 'pdf':
      if (file.frame) return pdfLink(name, file.frame.pageUrl);
      return html`<object class="pdf" data="${showUrl}" type="application/pdf" aria-label="${name}">${card(
        name,
        'Your browser does not show PDFs in a page.',
      )}</object>`;
    case 'empty':
      return card(name, 'This file is empty.');
    case 'none':
      return card(name, 'There is no preview for files of this type.');
    case 'text': {
      const kind = preview.text.form === 'plain' ? 'sheet plain' : 'sheet';
      return html`<div class="${kind}">${preview.text}</div>${cut(preview)}`;
    }
  }
}

/** Returns an image; a click on it, or its switch, toggles between fitted and actual size without a script. */
function image({ name, showUrl, zoom }: Shown): Html {
  const checked = zoom === 'actual' ? html` checked` : undefined;
  const size = zoom === 'fit' ? 'fit' : 'best';
  return html`<div class="picture ${size}">
<label class="canvas" for="actual"><img src="${showUrl}" alt="${name}"></label>
<label class="zoom"><input id="actual" type="checkbox"${checked}> Actual size</label>
</div>`;
}

/** Returns a link to a PDF, because browsers do not show PDFs in a sandbox. */
function pdfLink(name: string, pageUrl: string): Html {
  return html`<div class="card">${icon(iconKindOf(name))}<p>PDFs open on a separate page.</p>
<p class="actions"><a class="button primary" href="${pageUrl}" target="_blank" rel="noopener">Open the PDF</a></p></div>`;
}

function card(name: string, text: string): Html {
  return html`<div class="card">${icon(iconKindOf(name))}<p>${text}</p></div>`;
}

function cut({ cutAtBytes }: { readonly cutAtBytes?: number | undefined }): Html | undefined {
  if (cutAtBytes === undefined) return undefined;
  return html`<p class="note">These are the first ${sizeText(cutAtBytes)} of the file. Download it to see all.</p>`;
}
