import { failure, Refusal } from '../failures.ts';
import type { Caller, Content, DownloadCall } from '../route.ts';
import type { StoredFile } from '../storage/storage.ts';
import { namesRev } from './etag.ts';
import { singleRange } from './range.ts';

/** What a download of `file` answers: all of it, the part that was asked for, or that the client has it. */
export function fileContent(
  { storage, range, ifNoneMatch }: DownloadCall<Caller | undefined>,
  file: StoredFile,
  result: object,
): Content {
  const content = { rev: file.rev, sizeBytes: file.sizeBytes, result };
  if (namesRev(ifNoneMatch, file.rev)) return { ...content, range: 'not-modified', bytes: nothing() };
  const wanted = singleRange(range, file.sizeBytes);
  if (wanted === 'unsatisfiable') throw unsatisfiable(file.sizeBytes);
  return { ...content, range: wanted, bytes: storage.read(file, wanted, { lent: true }) };
}

/** The tag is in no published union; the official transfer helpers look for it in the summary. */
function unsatisfiable(sizeBytes: number): Refusal {
  const told = { tags: ['range', 'not_satisfiable'], value: failure('other').value };
  return new Refusal(416, told, { 'content-range': `bytes */${sizeBytes}` });
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
