import { describe, expect, test } from 'vitest';
import { BadCall } from '../../../../src/service/api/failures.ts';
import { ROUTES } from '../../../../src/service/routes/table.ts';

/** Returns what a function reports about an argument, or `undefined` when it accepts it. */
function complaint(name: string, argument: unknown): string | undefined {
  try {
    ROUTES.get(name)?.prepare(argument);
    return undefined;
  } catch (error) {
    if (error instanceof BadCall) return error.message;
    throw error;
  }
}

const COMMIT = 'path mode autorename client_modified mute property_groups strict_conflict';
const LIST =
  'path recursive include_media_info include_deleted include_has_explicit_shared_members include_mounted_folders limit shared_link include_property_groups include_non_downloadable_files include_restorable_info';
const RELOCATION = 'from_path to_path allow_shared_folder autorename allow_ownership_transfer';
const LINK = 'url path link_password';

/** The fields of each function's argument, by the official interface description of August 2026. */
const FIELDS: Readonly<Record<string, string>> = {
  'auth/token/revoke': '',
  'check/app': 'query',
  'check/user': 'query',
  'file_properties/templates/list_for_user': '',
  'files/alpha/get_metadata':
    'path include_media_info include_deleted include_has_explicit_shared_members include_property_groups include_property_templates',
  'files/alpha/upload': `${COMMIT} content_hash`,
  'files/copy': RELOCATION,
  'files/copy_batch': 'entries autorename allow_shared_folder allow_ownership_transfer',
  'files/copy_batch/check': 'async_job_id',
  'files/copy_batch/check_v2': 'async_job_id',
  'files/copy_batch_v2': 'entries autorename',
  'files/copy_v2': RELOCATION,
  'files/copy_reference/get': 'path',
  'files/copy_reference/save': 'copy_reference path',
  'files/create_folder': 'path autorename',
  'files/create_folder_batch': 'paths autorename force_async',
  'files/create_folder_batch/check': 'async_job_id',
  'files/create_folder_v2': 'path autorename',
  'files/delete': 'path parent_rev',
  'files/delete_batch': 'entries',
  'files/delete_batch/check': 'async_job_id',
  'files/delete_v2': 'path parent_rev',
  'files/download': 'path rev',
  'files/download_zip': 'path',
  'files/get_metadata':
    'path include_media_info include_deleted include_has_explicit_shared_members include_property_groups',
  'files/get_preview': 'path rev',
  'files/get_temporary_link': 'path',
  'files/get_temporary_upload_link': 'commit_info duration',
  'files/get_thumbnail': 'path format size mode exclude_media_info',
  'files/get_thumbnail_batch': 'entries',
  'files/get_thumbnail_v2': 'resource format size mode exclude_media_info',
  'files/list_folder': LIST,
  'files/list_folder/continue': 'cursor',
  'files/list_folder/get_latest_cursor': LIST,
  'files/list_folder/longpoll': 'cursor timeout',
  'files/list_revisions': 'path mode limit before_rev include_restorable_info',
  'files/move': RELOCATION,
  'files/move_batch': 'entries autorename allow_shared_folder allow_ownership_transfer',
  'files/move_batch/check': 'async_job_id',
  'files/move_batch/check_v2': 'async_job_id',
  'files/move_batch_v2': 'entries autorename allow_ownership_transfer',
  'files/move_v2': RELOCATION,
  'files/permanently_delete': 'path parent_rev',
  'files/restore': 'path rev',
  'files/save_url': 'path url',
  'files/save_url/check_job_status': 'async_job_id',
  'files/search': 'path query start max_results mode',
  'files/search/continue_v2': 'cursor',
  'files/search_v2': 'query options match_field_options include_highlights',
  'files/tags/add': 'path tag_text',
  'files/tags/get': 'paths',
  'files/tags/remove': 'path tag_text',
  'files/upload': `${COMMIT} content_hash`,
  'files/upload_session/append': 'session_id offset',
  'files/upload_session/append_batch': 'entries content_hash',
  'files/upload_session/append_v2': 'cursor close content_hash',
  'files/upload_session/finish': 'cursor commit content_hash',
  'files/upload_session/finish_batch': 'entries',
  'files/upload_session/finish_batch/check': 'async_job_id',
  'files/upload_session/finish_batch_v2': 'entries',
  'files/upload_session/start': 'close session_type content_hash',
  'files/upload_session/start_batch': 'num_sessions session_type',
  'sharing/create_shared_link_with_settings': 'path settings',
  'sharing/create_shared_link': 'path short_url pending_upload',
  'sharing/get_shared_link_file': LINK,
  'sharing/get_shared_link_metadata': LINK,
  'sharing/get_shared_links': 'path',
  'sharing/list_folders': 'limit actions',
  'sharing/list_shared_links': 'path cursor direct_only',
  'sharing/modify_shared_link_settings': 'url settings remove_expiration',
  'sharing/revoke_shared_link': 'url',
  'users/features/get_values': 'features',
  'users/get_account': 'account_id',
  'users/get_account_batch': 'account_ids',
  'users/get_current_account': '',
  'users/get_space_usage': '',
};

const SETTINGS = 'require_password link_password expires audience access requested_visibility allow_download';

/** The structs inside arguments, with the place of each one in its function's argument. */
const STRUCTS: readonly (readonly [
  name: string,
  where: string,
  fields: string,
  around: (value: object) => object,
])[] = [
  ['files/upload_session/finish', 'commit: ', COMMIT, (commit) => ({ commit, cursor: CURSOR })],
  ['files/upload_session/finish', 'cursor: ', 'session_id offset', (cursor) => ({ cursor })],
  [
    'files/upload_session/finish_batch_v2',
    'entries: 0: ',
    'cursor commit content_hash',
    (entry) => ({ entries: [entry] }),
  ],
  [
    'files/upload_session/append_batch',
    'entries: 0: ',
    'cursor length close',
    (entry) => ({ entries: [entry] }),
  ],
  ['files/get_temporary_upload_link', 'commit_info: ', COMMIT, (commit_info) => ({ commit_info })],
  ['files/delete_batch', 'entries: 0: ', 'path parent_rev', (entry) => ({ entries: [entry] })],
  ['files/move_batch_v2', 'entries: 0: ', 'from_path to_path', (entry) => ({ entries: [entry] })],
  [
    'files/get_thumbnail_batch',
    'entries: 0: ',
    'path format size mode exclude_media_info',
    (entry) => ({ entries: [entry] }),
  ],
  ['files/list_folder', 'shared_link: ', 'url password', (shared_link) => ({ path: '', shared_link })],
  [
    'files/search_v2',
    'options: ',
    'path max_results order_by file_status filename_only file_extensions file_categories account_id',
    (options) => ({ query: 'x', options }),
  ],
  [
    'files/search_v2',
    'match_field_options: ',
    'include_highlights',
    (match_field_options) => ({ query: 'x', match_field_options }),
  ],
  [
    'sharing/create_shared_link_with_settings',
    'settings: ',
    SETTINGS,
    (settings) => ({ path: '/x', settings }),
  ],
  ['sharing/modify_shared_link_settings', 'settings: ', SETTINGS, (settings) => ({ url: 'x', settings })],
];

const CURSOR = { session_id: 'x', offset: 0 };

const words = (text: string) => text.split(' ').filter(Boolean);

const ALL_FIELDS = Array.from(
  new Set([...Object.values(FIELDS), ...STRUCTS.map(([, , fields]) => fields)].flatMap(words)),
);

/** Returns the fields that a function or struct accepts, out of all fields of the API. */
function acceptedFields(name: string, where: string, around: (value: object) => object): string[] {
  return ALL_FIELDS.filter(
    (field) => !complaint(name, around({ [field]: null }))?.startsWith(`${where}unknown field '${field}'`),
  );
}

test('every function of the service has a row in the table of fields', () => {
  expect(Object.keys(FIELDS).sort()).toEqual(Array.from(ROUTES.keys()).sort());
});

test.each(Object.entries(FIELDS))('%s accepts the fields %j and no others', (name, fields) => {
  expect(acceptedFields(name, '', (value) => value).sort()).toEqual(words(fields).sort());
});

test.each(STRUCTS)(
  '%s accepts in the struct at %j the fields %j and no others',
  (name, where, fields, around) => {
    expect(acceptedFields(name, where, around).sort()).toEqual(words(fields).sort());
  },
);

const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
const finishing = (count: number) => ({ entries: many(count, { cursor: CURSOR, commit: { path: '/x' } }) });
const moving = (count: number) => ({ entries: many(count, { from_path: '/x', to_path: '/y' }) });
const hash = (length: number) => ({ path: '/x', content_hash: '0'.repeat(length) });

/** The smallest and the largest accepted value. */
const LIMITS: readonly (readonly [
  name: string,
  argument: (value: number) => object,
  min: number,
  max: number,
])[] = [
  ['check/user', (length) => ({ query: 'x'.repeat(length) }), 0, 500],
  ['files/list_folder', (limit) => ({ path: '', limit }), 1, 2000],
  ['files/list_folder/get_latest_cursor', (limit) => ({ path: '', limit }), 1, 2000],
  ['files/list_folder/longpoll', (timeout) => ({ cursor: 'x', timeout }), 30, 480],
  ['files/list_revisions', (limit) => ({ path: '/x', limit }), 1, 100],
  ['files/search_v2', (max_results) => ({ query: 'x', options: { max_results } }), 1, 1000],
  ['files/search_v2', (length) => ({ query: 'x'.repeat(length) }), 0, 1000],
  ['files/search_v2', (length) => ({ query: 'x', options: { account_id: 'x'.repeat(length) } }), 40, 40],
  ['files/search', (start) => ({ path: '', query: 'x', start }), 0, 9999],
  ['files/search', (max_results) => ({ path: '', query: 'x', max_results }), 1, 1000],
  ['files/search', (length) => ({ path: '', query: 'x'.repeat(length) }), 0, 1000],
  ['files/tags/add', (length) => ({ path: '/x', tag_text: 'x'.repeat(length) }), 1, 32],
  ['files/tags/remove', (length) => ({ path: '/x', tag_text: 'x'.repeat(length) }), 1, 32],
  ['files/tags/get', (count) => ({ paths: many(count, '/x') }), 0, 1000],
  ['files/upload', hash, 64, 64],
  ['files/upload_session/start_batch', (num_sessions) => ({ num_sessions }), 1, 1000],
  [
    'files/upload_session/append_batch',
    (count) => ({ entries: many(count, { cursor: CURSOR, length: 0 }) }),
    0,
    1000,
  ],
  ['files/upload_session/finish_batch', finishing, 0, 1000],
  ['files/upload_session/finish_batch_v2', finishing, 0, 1000],
  ['files/get_temporary_upload_link', (duration) => ({ commit_info: { path: '/x' }, duration }), 60, 14_400],
  ['files/create_folder_batch', (count) => ({ paths: many(count, '/x') }), 0, 10_000],
  ['files/delete_batch', (count) => ({ entries: many(count, { path: '/x' }) }), 0, 1000],
  ['files/move_batch_v2', moving, 1, 1000],
  ['files/copy_batch_v2', moving, 1, 1000],
  ['files/move_batch', moving, 1, 1000],
  ['files/copy_batch', moving, 1, 1000],
  ['sharing/list_folders', (limit) => ({ limit }), 1, 1000],
  ['users/get_account', (length) => ({ account_id: 'x'.repeat(length) }), 40, 40],
  ['users/get_account_batch', (count) => ({ account_ids: many(count, 'x'.repeat(40)) }), 1, 300],
];

/** The members of the unions without a value; each is accepted as a struct with its tag, or as a plain string. */
const TAGS: readonly (readonly [name: string, members: string, around: (value: unknown) => object])[] = [
  [
    'users/features/get_values',
    'paper_as_files file_locking team_shared_dropbox distinct_member_home',
    (feature) => ({ features: [feature] }),
  ],
  [
    'sharing/list_folders',
    'change_options disable_viewer_info edit_contents enable_viewer_info invite_editor invite_viewer invite_viewer_no_comment relinquish_membership unmount unshare leave_a_copy share_link create_link set_access_inheritance',
    (action) => ({ actions: [action] }),
  ],
  ['sharing/create_shared_link', 'file folder', (kind) => ({ path: '/x', pending_upload: kind })],
  ['files/upload', 'add overwrite', (mode) => ({ path: '/x', mode })],
  ['files/upload_session/start', 'sequential concurrent', (session_type) => ({ session_type })],
  [
    'files/upload_session/start_batch',
    'sequential concurrent',
    (type) => ({ num_sessions: 1, session_type: type }),
  ],
  ['files/list_revisions', 'path id', (mode) => ({ path: '/x', mode })],
  ['files/get_thumbnail_batch', 'jpeg png webp', (format) => ({ entries: [{ path: '/x', format }] })],
  [
    'files/get_thumbnail_batch',
    'strict bestfit fitone_bestfit original',
    (mode) => ({ entries: [{ path: '/x', mode }] }),
  ],
  [
    'files/get_thumbnail_v2',
    'w32h32 w64h64 w128h128 w256h256 w480h320 w640h480 w960h640 w1024h768 w2048h1536',
    (size) => ({ resource: { '.tag': 'path', path: '/x' }, size }),
  ],
  [
    'files/search',
    'filename filename_and_content deleted_filename',
    (mode) => ({ path: '', query: 'x', mode }),
  ],
  ['files/search_v2', 'relevance last_modified_time', (order_by) => ({ query: 'x', options: { order_by } })],
  ['files/search_v2', 'active deleted', (file_status) => ({ query: 'x', options: { file_status } })],
  [
    'files/search_v2',
    'image document pdf spreadsheet presentation audio video folder paper others',
    (category) => ({ query: 'x', options: { file_categories: [category] } }),
  ],
  [
    'sharing/create_shared_link_with_settings',
    'public team no_one password members',
    (audience) => ({ path: '/x', settings: { audience } }),
  ],
  [
    'sharing/create_shared_link_with_settings',
    'viewer editor max default',
    (access) => ({ path: '/x', settings: { access } }),
  ],
  [
    'sharing/modify_shared_link_settings',
    'public team_only password',
    (requested_visibility) => ({ url: 'x', settings: { requested_visibility } }),
  ],
];

test.each(TAGS)('%s accepts the tags %s and no others', (name, members, around) => {
  for (const tag of words(members)) {
    expect(complaint(name, around(tag)), tag).toBeUndefined();
    expect(complaint(name, around({ '.tag': tag })), tag).toBeUndefined();
  }
  const every = TAGS.flatMap(([, tags]) => words(tags));
  const taken = every.filter((tag) => complaint(name, around(tag)) === undefined);
  expect(new Set(taken)).toEqual(new Set(words(members)));
  expect(complaint(name, around('other'))).toContain("unknown tag 'other'");
});

describe('limits', () => {
  test.each(LIMITS)('%s with %s accepts values from %i to %i and no others', (name, argument, min, max) => {
    expect(complaint(name, argument(min))).toBeUndefined();
    expect(complaint(name, argument(max))).toBeUndefined();
    if (min > 0) expect(complaint(name, argument(min - 1))).toMatch(/must (be|have) at least/);
    expect(complaint(name, argument(max + 1))).toMatch(/must (be|have) at most/);
  });

  test.each([
    ['files/list_folder/continue', 'cursor'],
    ['files/search/continue_v2', 'cursor'],
    ['files/delete_batch/check', 'async_job_id'],
    ['files/move_batch/check_v2', 'async_job_id'],
  ])('%s refuses an empty %s', (name, field) => {
    expect(complaint(name, { [field]: '' })).toBe(`${field}: must be at least 1 characters, got 0`);
    expect(complaint(name, { [field]: 'x' })).toBeUndefined();
  });

  test('files/delete_v2 refuses a revision of fewer than nine digits', () => {
    expect(complaint('files/delete_v2', { path: '/x', parent_rev: '01234567' })).toMatch(/at least 9/);
    expect(complaint('files/delete_v2', { path: '/x', parent_rev: '012345678' })).toBeUndefined();
  });
});
