import { onAbort } from '../../util/abort.ts';
import type { Context, Method } from '../context.ts';
import { DavError } from '../errors.ts';
import { appended, contentRangeOf } from './append.ts';
import type { FailedPuts } from './failed-puts.ts';
import { answerStored, bodySignal, type ContentFor, checkedBody, storeFile } from './store-file.ts';

/**
 * Creates PUT (RFC 4918 §9.7, RFC 9110 §9.3.4), which checks everything it can before it asks for the body. Adds a PUT
 * that fails, or whose client goes away before the answer, to `failedPuts`: the client may delete the path to clean up.
 */
export function createPut(failedPuts: FailedPuts): Method {
  return async (context) => {
    const { principal, path } = context;
    const { signal } = context.exchange;
    const remember = () => failedPuts.add(principal, path);
    onAbort(signal, remember);
    try {
      await store(context);
      if (!signal.aborted) failedPuts.delete(principal, path);
    } catch (error) {
      remember();
      throw error;
    }
  };
}

async function store(context: Context): Promise<void> {
  const { exchange, request } = context;
  refuseCompressed(context);
  const range = request.headers['content-range'] === undefined ? undefined : contentRangeOf(exchange);
  const content: ContentFor = (entry) => {
    const body = checkedBody(context);
    return range ? appended(context, entry, range, body) : { body, sizeBytes: exchange.announcedBytes };
  };
  const how = { isPinned: range !== undefined, signal: bodySignal(context) };
  await answerStored(context, await storeFile(context, content, how));
}

/** Refuses a compressed body, which would be stored as if it were the file. */
function refuseCompressed({ request }: Context): void {
  const coding = String(request.headers['content-encoding'] ?? '').trim();
  if (coding.split(/[\s,]+/).some((one) => /^((x-)?(gzip|compress)|deflate|br|zstd)$/i.test(one)))
    throw new DavError(415, `Content-Encoding: ${coding} is not supported; send the file uncompressed`);
}
