import type { Route } from '../api/route.ts';
import { COPY_REFERENCE_ROUTES } from './copy-references.ts';
import { DOWNLOAD_ROUTES } from './download.ts';
import { METADATA_ROUTES } from './metadata.ts';
import { PREVIEW_ROUTES } from './preview.ts';
import { SAVE_URL_ROUTES } from './save-url.ts';
import { SEARCH_ROUTES } from './search.ts';
import { SHARING_ROUTES } from './sharing.ts';
import { SHARING_V1_ROUTES } from './sharing-v1.ts';
import { TAG_ROUTES } from './tags.ts';
import { TEMPORARY_ROUTES } from './temporary.ts';
import { THUMBNAIL_ROUTES } from './thumbnails.ts';
import { TREE_ROUTES } from './tree.ts';
import { TREE_BATCH_ROUTES } from './tree-batch.ts';
import { UPLOAD_ROUTES } from './upload.ts';
import { UPLOAD_BATCH_ROUTES } from './upload-batch.ts';
import { USER_ROUTES } from './users.ts';

const ALL: readonly Route[] = [
  ...METADATA_ROUTES,
  ...UPLOAD_ROUTES,
  ...UPLOAD_BATCH_ROUTES,
  ...DOWNLOAD_ROUTES,
  ...TEMPORARY_ROUTES,
  ...THUMBNAIL_ROUTES,
  ...PREVIEW_ROUTES,
  ...SEARCH_ROUTES,
  ...TREE_ROUTES,
  ...TREE_BATCH_ROUTES,
  ...COPY_REFERENCE_ROUTES,
  ...SAVE_URL_ROUTES,
  ...TAG_ROUTES,
  ...SHARING_ROUTES,
  ...SHARING_V1_ROUTES,
  ...USER_ROUTES,
];

/** Every function of the API by name; scopes, styles and arguments are defined only here. */
export const ROUTES: ReadonlyMap<string, Route> = new Map(ALL.map((route) => [route.name, route]));
