import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { pseudoRandomBytes } from './bytes.ts';
import type { TestService } from './service.ts';
import {
  type Answered,
  type Callable,
  download,
  put,
  refreshForm,
  rpc,
  send,
  sharedLink,
  upload,
} from './service-client.ts';

/** What was made in a service, and is asked of its copies. */
export interface Filled {
  readonly token: string;
  readonly others: readonly string[];
  readonly refresh: Record<string, string>;
  readonly paths: readonly string[];
  readonly revs: readonly string[];
  readonly links: readonly string[];
  readonly temporaryLink: string;
  readonly reference: string;
  readonly job: unknown;
  readonly session: string;
  /** Of the listing that was complete before the last changes, and of one whose first page was read. */
  readonly cursors: readonly string[];
}

/** A file of more than one block, and one of a block that is no row. */
const LARGE = pseudoRandomBytes(4 * 1024 * 1024 + 200_000, 1);
const MEDIUM = pseudoRandomBytes(100_000, 2);

const valuesOf = async (answer: Promise<Answered>) => {
  const { status, json, text } = await answer;
  if (status !== 200) throw new Error(`${status} ${text}`);
  return json as Record<string, unknown>;
};

/** Uses most of what a service can do. */
export async function filled(service: TestService): Promise<Filled> {
  const call = (name: string, argument: unknown) => valuesOf(rpc(service, name, argument));
  const others = [
    await member(service, 'ann@example.org', undefined),
    await member(service, 'bob@example.org', 'Crew'),
  ];
  const revs = [
    await put(service, '/Docs/a.txt', 'one'),
    await put(service, '/Docs/a.txt', 'two'),
    await put(service, '/large', LARGE),
  ];
  for (const token of others) await put({ ...service, token }, '/medium', MEDIUM);
  await put(service, '/medium', MEDIUM);
  await put(service, '/Straße 🎉/ÄÖ \u{1F600}.txt', 'names');
  const whole = await call('files/list_folder', { path: '', recursive: true });
  const part = await call('files/list_folder', { path: '', recursive: true, limit: 2 });
  await call('files/copy_v2', { from_path: '/Docs', to_path: '/Copy' });
  await call('files/move_v2', { from_path: '/medium', to_path: '/moved/medium' });
  await call('files/delete_v2', { path: '/Copy/a.txt' });
  await put(service, '/gone', 'deleted later');
  await call('files/delete_v2', { path: '/gone' });
  await put(service, '/never', 'deleted forever');
  await call('files/permanently_delete', { path: '/never' });
  await call('files/tags/add', { path: '/Docs/a.txt', tag_text: 'a_tag' });
  const links = [
    await sharedLink(service, '/Docs/a.txt'),
    await sharedLink(service, '/Docs', { requested_visibility: 'password', link_password: 'pass word' }),
  ];
  const { link } = await call('files/get_temporary_link', { path: '/large' });
  const { copy_reference: reference } = await call('files/copy_reference/get', { path: '/Docs/a.txt' });
  const { session_id: session } = await valuesOf(
    upload(service, 'files/upload_session/start', {}, { body: 'begun ' }),
  );
  const { async_job_id: job } = await call('files/move_batch_v2', {
    entries: [{ from_path: '/Straße 🎉', to_path: '/Street' }],
  });
  await jobEnded(service, job);
  return {
    token: service.token,
    others,
    refresh: refreshForm(service),
    paths: ['/Docs/a.txt', '/Copy/a.txt', '/gone', '/large', '/moved/medium'],
    revs: revs.map(({ rev }) => String(rev)),
    links,
    temporaryLink: String(link),
    reference: String(reference),
    job,
    session: String(session),
    cursors: [String(whole['cursor']), String(part['cursor'])],
  };
}

async function member(service: TestService, email: string, team: string | undefined): Promise<string> {
  const person = { email, givenName: email, surname: '', mayDeletePermanently: true };
  const { id: accountId } = await service.service.addAccount(person, team);
  return await service.service.grant({ accountId, scopes: SCOPES });
}

async function jobEnded(service: Callable, job: unknown): Promise<void> {
  for (;;) {
    const { json } = await rpc(service, 'files/move_batch/check_v2', { async_job_id: job });
    if ((json as { '.tag': string })['.tag'] !== 'in_progress') return;
  }
}

/** Returns what a service answers to questions about all that `filled` has made, and changes nothing. */
export async function answersOf(url: string, made: Filled): Promise<readonly unknown[]> {
  const service: Callable = { url, token: made.token };
  const shown = ({ status, json, text }: Answered) => ({ status, answer: withoutUrl(json ?? text, url) });
  const ask = async (name: string, argument: unknown, token = made.token) =>
    shown(await rpc({ url, token }, name, argument));
  const answers: unknown[] = [];
  for (const token of [made.token, ...made.others]) {
    answers.push(await ask('users/get_current_account', null, token));
    answers.push(await ask('users/get_space_usage', null, token));
    answers.push(
      withoutCursor(
        await ask('files/list_folder', { path: '', recursive: true, include_deleted: true }, token),
      ),
    );
  }
  for (const path of made.paths) {
    answers.push(await ask('files/get_metadata', { path, include_deleted: true }));
    answers.push(await ask('files/list_revisions', { path }));
    answers.push(await ask('files/tags/get', { paths: [path] }));
    answers.push(shown(await download(service, path)));
  }
  for (const rev of made.revs) answers.push(shown(await download(service, `rev:${rev}`)));
  answers.push(await ask('sharing/list_shared_links', {}));
  answers.push(await ask('files/search_v2', { query: 'medium' }));
  answers.push(await ask('files/move_batch/check_v2', { async_job_id: made.job }));
  for (const link of [...made.links, made.temporaryLink]) {
    const { pathname, search } = new URL(link);
    const { status, text } = await send(`${url}${pathname}${search.replace('dl=0', 'raw=1')}`, {});
    answers.push({ status, text: withoutUrl(text, url) });
  }
  return answers;
}

/** Returns whether the cursors of before lead to the changes since, or are refused as ones that have to start over. */
export async function cursorsIn(url: string, made: Filled): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  for (const cursor of made.cursors) {
    const answered = await rpc({ url, token: made.token }, 'files/list_folder/continue', { cursor });
    answers.push(withoutCursor({ status: answered.status, answer: answered.json }));
  }
  return answers;
}

/** Goes on with what was begun: logs in by the refresh token, ends the upload, saves the reference, and changes a file. */
export async function continued(url: string, made: Filled): Promise<readonly unknown[]> {
  const service: Callable = { url, token: made.token };
  const body = new URLSearchParams(made.refresh);
  const login = await send(`${url}/oauth2/token`, { method: 'POST', body });
  const argument = { cursor: { session_id: made.session, offset: 6 }, commit: { path: '/ended' } };
  const ended = await upload(service, 'files/upload_session/finish', argument, { body: 'and ended' });
  const saved = await rpc(service, 'files/copy_reference/save', {
    copy_reference: made.reference,
    path: '/saved',
  });
  const before = (await rpc(service, 'files/get_metadata', { path: '/Docs/a.txt' })).json as { rev: string };
  const mode = { '.tag': 'update', update: before.rev };
  const changed = await upload(service, 'files/upload', { path: '/Docs/a.txt', mode }, { body: 'three' });
  const texts = [];
  for (const path of ['/ended', '/saved', '/Docs/a.txt', `rev:${made.revs[0]}`])
    texts.push((await download(service, path)).text);
  return [login.status, ended.status, saved.status, changed.status, ...texts];
}

/** What `continued` returns for a service that is whole. */
export const CONTINUED = [200, 200, 200, 200, 'begun and ended', 'two', 'three', 'one'];

/** Leaves out what differs from answer to answer: the address, ids of requests, the dots of summaries, and the free space. */
function withoutUrl(value: unknown, url: string): unknown {
  const text = JSON.stringify(value)
    .replaceAll(url, 'URL')
    .replaceAll(/"[0-9a-f]{32}"/g, '"REQUEST"')
    .replaceAll(/\/\.{0,3}"/g, '/"')
    .replaceAll(/"allocated":\d+/g, '"allocated":0');
  return JSON.parse(text);
}

function withoutCursor(shown: { status: number; answer: unknown }): unknown {
  const { cursor, ...rest } = (shown.answer ?? {}) as Record<string, unknown>;
  return { ...shown, hasCursor: typeof cursor === 'string', answer: rest };
}
