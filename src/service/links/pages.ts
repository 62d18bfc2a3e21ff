import { relativePlace, withRelativeLinks } from '../../util/markdown.ts';
import type { ReadableFile } from '../content/file-content.ts';
import { textOf } from '../content/file-text.ts';
import type { ServiceDeps } from '../deps.ts';
import type { Previews } from '../previews/previews.ts';
import type { Storage, StoredFile, StoredFolder } from '../storage/storage.ts';
import { mayHaveThumbnail } from '../thumbnails/thumbnail.ts';
import { mediaKindOf } from './content-type.ts';
import type { Link } from './links.ts';
import { itemOf, type OpenLink } from './sharing.ts';
import type { LinkAddress } from './url.ts';
import type { FolderView } from './web/folder.ts';
import { plainLines } from './web/lines.ts';
import type { Crumb, FilePage, FolderPage } from './web/pages.ts';
import type { Frame, Preview, Zoom } from './web/preview.ts';
import type { RenderedText } from './web/text.ts';

/** Maximum number of items that a folder's page shows; there is no second page. */
const FOLDER_PAGE_ITEMS_MAX = 2000;

/** Maximum length of the URLs of a page's items, in characters: each has the whole path, which may take 64 KiB. */
const FOLDER_PAGE_URLS_LENGTH_MAX = 4_000_000;

/** Maximum number of folders above an item that its page shows, for the same reason. */
const CRUMBS_MAX = 32;

/** How the visitor chose to view the page. */
export interface ViewOptions {
  readonly zoom: Zoom;
  readonly view: FolderView;
  /** `small` for a page in a frame. */
  readonly headerSize: 'normal' | 'small';
}

/** Returns the options in a page's query; defaults for missing and invalid ones. */
export function viewOptions(query: URLSearchParams): ViewOptions {
  const zoom = query.get('zoom');
  return {
    zoom: zoom === 'fit' || zoom === 'actual' ? zoom : 'best',
    view: query.get('view') === 'grid' ? 'grid' : 'list',
    headerSize: query.get('headerSize') === 'small' ? 'small' : 'normal',
  };
}

/** Returns the URL of the same link's page for the item `below` the linked one. */
export type PageUrl = (below: readonly string[], view: FolderView) => string;

/** An open link, and how it is shown. */
export interface Look {
  readonly opened: OpenLink;
  readonly address: LinkAddress;
  readonly options: ViewOptions;
  readonly pageUrl: PageUrl;
  /** The address of the service relative to the page, as returned by `rootFrom`. */
  readonly base: string;
  readonly place: 'page' | 'frame';
}

/** Returns the content of a linked file's page. Throws `signal`'s reason when the visitor leaves. */
export async function filePageOf(
  deps: ServiceDeps,
  look: Look,
  file: StoredFile,
  signal: AbortSignal,
): Promise<FilePage> {
  const { opened, options } = look;
  return {
    name: file.name,
    sizeBytes: file.sizeBytes,
    modifiedMs: file.clientModifiedMs,
    preview: withLinks(await filePreview(deps, { namespace: opened.account.namespace, file }, signal), look),
    zoom: options.zoom,
    above: await crumbs(deps, look),
    ...frameOf(look),
    showUrl: bytesUrl(look, 'raw'),
    ...(opened.link.allowDownload && { downloadUrl: bytesUrl(look, 'dl') }),
  };
}

/** Has relative links of a document lead to the pages of files in the linked folder; a linked file has no others beside it. */
function withLinks(preview: Preview, { address, options, pageUrl, opened: { link }, base }: Look): Preview {
  if (preview.kind !== 'text' || preview.text.form !== 'document') return preview;
  const { below } = address;
  const markup = withRelativeLinks(preview.text.markup, (relative, as) => {
    const place = below.length > 0 ? relativePlace(relative, below.slice(0, -1)) : undefined;
    if (!place) return undefined;
    if (as === 'image') return `${base}${placeOf(link, place.names)}?rlkey=${link.rlkey}&raw=1`;
    return pageUrl(place.names, options.view) + (place.section === undefined ? '' : `#${place.section}`);
  });
  return { ...preview, text: { ...preview.text, markup } };
}

/** Returns the content of a linked folder's page. */
export async function folderPageOf(deps: ServiceDeps, look: Look, folder: StoredFolder): Promise<FolderPage> {
  const { opened, address, options, pageUrl, base } = look;
  const { link, account } = opened;
  const owner = { namespace: account.namespace, account: account.id, app: '' };
  // By its id: another folder may take its path before it is listed.
  const scope = { path: folder.id, recursive: false, includeDeleted: false };
  const { entries, hasMore } = await deps.storage.list(owner, scope, FOLDER_PAGE_ITEMS_MAX);
  let urlsLength = 0;
  const items = entries.flatMap((entry) => {
    if (entry.kind === 'deleted' || urlsLength > FOLDER_PAGE_URLS_LENGTH_MAX) return [];
    const { kind, name } = entry;
    const url = pageUrl([...address.below, name], options.view);
    urlsLength += url.length;
    if (entry.kind === 'folder') return [{ kind, name, url }];
    const { sizeBytes, clientModifiedMs: modifiedMs } = entry;
    const thumbnail = mayHaveThumbnail(entry) && {
      thumbnailUrl: `${base}${placeOf(link, [...address.below, name])}?rlkey=${link.rlkey}&thumb=1`,
    };
    if (thumbnail) urlsLength += thumbnail.thumbnailUrl.length;
    return [{ kind, name, url, sizeBytes, modifiedMs, ...thumbnail }];
  });
  return {
    name: folder.name,
    items,
    isCut: hasMore || items.length < entries.length,
    view: options.view,
    viewUrls: { list: pageUrl(address.below, 'list'), grid: pageUrl(address.below, 'grid') },
    above: await crumbs(deps, look),
    ...frameOf(look),
    ...(link.allowDownload && { downloadUrl: bytesUrl(look, 'dl') }),
  };
}

function frameOf({ place, opened, address, options, base }: Look): { readonly frame?: Frame } {
  if (place === 'page') return {};
  const pageUrl = linkPageUrl(opened, base)(address.below, options.view);
  return { frame: { headerSize: options.headerSize, pageUrl } };
}

/** Returns the nearest of the folders from the linked one down to the item. */
async function crumbs(deps: ServiceDeps, { opened, address, options, pageUrl }: Look): Promise<Crumb[]> {
  const { below } = address;
  const linked = below.length > 0 ? await itemOf(deps, opened.account, opened.link.itemId) : undefined;
  if (!linked) return [];
  const names = [linked.name, ...below.slice(0, -1)];
  const first = Math.max(0, names.length - CRUMBS_MAX);
  return names.slice(first).map((name, index) => ({
    name,
    url: pageUrl(below.slice(0, first + index), options.view),
  }));
}

/** Returns the URLs of the pages at the link's own address. */
export function linkPageUrl({ link }: OpenLink, base: string): PageUrl {
  return (below, view) =>
    `${base}${placeOf(link, below)}?rlkey=${link.rlkey}&dl=0${view === 'grid' ? '&view=grid' : ''}`;
}

/** Returns the URLs of the pages in another site's frame, with the options of that site. */
export function framePageUrl(
  opened: OpenLink,
  { zoom, headerSize }: ViewOptions,
  { base, webUrl }: { readonly base: string; readonly webUrl: string },
): PageUrl {
  const page = linkPageUrl(opened, webUrl);
  const frame = `${base}/embed`;
  return (below, view) =>
    `${frame}?${new URLSearchParams({ link: page(below, 'list'), zoom, view, headerSize })}`;
}

/** Returns the URL of the bytes, to save (`dl`) or to show (`raw`). */
function bytesUrl({ address, opened: { link }, base }: Look, as: 'dl' | 'raw'): string {
  return `${base}${placeOf(link, address.below)}?rlkey=${link.rlkey}&${as}=1`;
}

function placeOf({ itemKind, token }: Link, below: readonly string[]): string {
  if (itemKind === 'file') return `/scl/fi/${token}`;
  return `/scl/fo/${[token, 'h', ...below.map(encodeURIComponent)].join('/')}`;
}

/** Maximum size of the beginning of a text file that a page shows, in bytes. */
const TEXT_BYTES_MAX = 64 * 1024;

interface Sources {
  readonly storage: Storage;
  readonly previews: Previews;
}

/** Returns how a page shows a file: by its extension, or by its beginning if that is text. Throws `signal`'s reason. */
async function filePreview(
  { storage, previews }: Sources,
  shown: ReadableFile,
  signal: AbortSignal,
): Promise<Preview> {
  const { namespace, file } = shown;
  const { name, sizeBytes } = file;
  if (sizeBytes === 0) return { kind: 'empty' };
  const media = mediaKindOf(name);
  if (media) return { kind: media };
  const beginning = await textOf(storage, shown, TEXT_BYTES_MAX);
  if (!beginning) return { kind: 'none' };
  const { text, isCut } = beginning;
  const rendered = await previews.text.of(`${namespace} ${file.rev} ${name}`, async () => ({ name, text }), {
    signal,
  });
  return {
    kind: 'text',
    text: typeof rendered === 'string' ? plainText(text) : rendered,
    cutAtBytes: isCut ? TEXT_BYTES_MAX : undefined,
  };
}

/** Returns text that could not be rendered, or not in time. */
function plainText(text: string): RenderedText {
  return { form: 'plain', ...plainLines(text) };
}
