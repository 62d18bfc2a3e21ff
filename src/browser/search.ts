import { DavError } from '../dav/errors.ts';
import type { Entry } from '../drive/files.ts';
import { answerJson, type Route } from './route.ts';

/** Maximum length of a query, in characters, as `files/search_v2` takes it. */
const QUERY_CHARACTERS_MAX = 1000;

/** `search`: the files and folders of the whole drive whose names have the words of `query`. */
export const search: Route = {
  method: 'GET',
  async run({ exchange, signal, drive, input }) {
    const query = input.text('query').trim();
    if (query === '' || query.length > QUERY_CHARACTERS_MAX)
      throw new DavError(400, `"query" must have 1 to ${QUERY_CHARACTERS_MAX} characters`);
    const { entries, cursor } = await drive.files.search(query, input.optional('cursor'), signal);
    await answerJson(exchange, { items: entries.map(itemOf), cursor: cursor ?? null });
  },
};

/** Returns an entry with the validator that conditional requests name. */
function itemOf(entry: Entry): object {
  const { kind, path, modifiedMs } = entry;
  if (entry.kind === 'folder') return { kind, path, modifiedMs };
  return { kind, path, modifiedMs, sizeBytes: entry.sizeBytes, etag: `"${entry.rev}"` };
}
