import type MarkdownIt from 'markdown-it';
import { html } from './html.ts';

/** The renderer of the library, which the pages of shared links and the web application have in common. */
type Renderer = ReturnType<typeof MarkdownIt>;

/** Addresses that leave the document's folder for the web. */
const WEB = /^(https?:\/\/|mailto:)/i;
/** Images embedded in the document; images of other sites would tell them who reads it. */
const OWN_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;
/** An address with a scheme or a host, or of the server's root in Windows' spelling. */
const ABSOLUTE = /^([a-z][a-z0-9+.-]*:|[/\\]{2}|\\)/i;

/**
 * Maximum length of all addresses of a document together, in characters. A reference such as `[a]` repeats the address of its
 * definition, and a completed link the path of the folder: a short text could become a page of any size.
 */
const ADDRESSES_LENGTH_MAX = 1_000_000;

const LINK_RELATION = 'noopener noreferrer nofollow';

/** Begins the ids of headings, so that a document cannot take an id of the page around it. */
const SECTION = 'section-';

/**
 * The attribute of a link to a file beside the document, or of an image beside it. Its value is the address as it is in the
 * document; `withRelativeLinks` puts another in its place.
 */
const RELATIVE_LINK = 'data-to';
const RELATIVE_IMAGE = 'data-image';

/**
 * Makes headings targets of links in the document, keeps links to the web and to files beside the document, and leaves
 * everything else as text: other schemes, addresses beyond their maximum length, and images of other sites, in whose place
 * is a link.
 */
export function limitLinks(made: Renderer): void {
  made.validateLink = (url) => WEB.test(url) || OWN_IMAGE.test(url) || !ABSOLUTE.test(url.trim());
  made.core.ruler.push('sections', (state) => {
    const taken = new Map<string, number>();
    state.tokens.forEach((token, index) => {
      if (token.type !== 'heading_open') return;
      const children = state.tokens[index + 1]?.children ?? [];
      const text = children
        .map(({ type, content }) => (/^(text|code_inline)$/.test(type) ? content : ''))
        .join('');
      const slug = slugOf(text);
      const count = taken.get(slug) ?? 0;
      taken.set(slug, count + 1);
      token.attrSet('id', SECTION + (count === 0 ? slug : `${slug}-${count}`));
    });
  });
  made.core.ruler.push('addresses', ({ tokens }) => {
    let length = 0;
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      for (const [, value] of token.attrs ?? []) length += String(value).length;
      if (length <= ADDRESSES_LENGTH_MAX) continue;
      if (token.type === 'image') token.type = 'text';
      if (token.type === 'link_open') token.attrs = null;
    }
  });
  const { rules } = made.renderer;
  rules['link_open'] = (tokens, index, options, _, self) => {
    const token = tokens[index];
    if (token?.attrs) token.attrs = linkAttributes(String(token.attrGet('href') ?? ''));
    return self.renderToken(tokens, index, options);
  };
  const image = rules['image'];
  rules['image'] = (tokens, index, options, environment, self) => {
    const token = tokens[index];
    const address = String(token?.attrGet('src') ?? '');
    if (image && OWN_IMAGE.test(address)) return image(tokens, index, options, environment, self);
    const { escapeHtml } = made.utils;
    const text = escapeHtml(token?.content ?? '');
    if (!WEB.test(address)) return `<img ${RELATIVE_IMAGE}="${escapeHtml(address)}" alt="${text}">`;
    const attributes = linkAttributes(address).map(([name, value]) => `${name}="${escapeHtml(value)}"`);
    return `<a ${attributes.join(' ')}>${text || escapeHtml(address)}</a>`;
  };
}

function linkAttributes(address: string): [string, string][] {
  if (address.startsWith('#')) return [['href', `#${SECTION}${slugOf(decoded(address.slice(1)))}`]];
  if (!WEB.test(address)) return [[RELATIVE_LINK, address]];
  return [
    ['href', address],
    ['rel', LINK_RELATION],
    ['target', '_blank'],
  ];
}

/** Returns the name of a heading in an address, as the services that show most Markdown documents make it. */
function slugOf(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

/** Returns the address for a relative link or image of a document; `undefined` if it leads nowhere. */
export type UrlOfRelative = (address: string, as: 'link' | 'image') => string | undefined;

/**
 * Completes the relative links and images in rendered markup. Those that lead nowhere become text, and so do those beyond the
 * maximum length of addresses. `urlOf` is called once for each address.
 */
export function withRelativeLinks(markup: string, urlOf: UrlOfRelative): string {
  /** Escaped URLs. */
  const urls = new Map<string, string | undefined>();
  let length = 0;
  const urlFor = (address: string, as: 'link' | 'image') => {
    if (length > ADDRESSES_LENGTH_MAX) return undefined;
    const key = `${as} ${address}`;
    if (!urls.has(key)) {
      const made = urlOf(unescaped(address), as);
      urls.set(key, made === undefined ? undefined : html`${made}`.markup);
    }
    const url = urls.get(key);
    length += url?.length ?? 0;
    return url;
  };
  return markup
    .replace(new RegExp(`<a ${RELATIVE_LINK}="([^"]*)">`, 'g'), (_, address: string) => {
      const url = urlFor(address, 'link');
      return url === undefined ? '<a>' : `<a href="${url}">`;
    })
    .replace(
      new RegExp(`<img ${RELATIVE_IMAGE}="([^"]*)" alt="([^"]*)">`, 'g'),
      (_, address: string, text: string) => {
        const url = urlFor(address, 'image');
        return url === undefined ? text : `<img src="${url}" alt="${text}">`;
      },
    );
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}

/** A place beside a document: the names of a path from the root that both have, and a heading in that document. */
export interface RelativePlace {
  readonly names: readonly string[];
  /** The id of a heading. */
  readonly section?: string;
}

/**
 * Returns where a relative `address` leads from a document in the folder `folder`; `undefined` when that is above the root,
 * or no path. An address that begins with a slash begins at the root.
 */
export function relativePlace(address: string, folder: readonly string[]): RelativePlace | undefined {
  const [, path = '', heading] = /^([^?#]*)[^#]*(?:#(.*))?$/s.exec(address.trim()) ?? [];
  const names = path.startsWith('/') ? [] : [...folder];
  for (const part of path.split('/')) {
    const name = decoded(part);
    if (name === '..' && names.pop() === undefined) return undefined;
    if (name === '..' || name === '.' || name === '') continue;
    if (name.includes('/') || name.includes('\0')) return undefined;
    names.push(name);
  }
  return heading === undefined ? { names } : { names, section: SECTION + slugOf(decoded(heading)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
