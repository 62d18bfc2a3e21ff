import { DavFailure, reasonIn } from './dav.ts';
import { type FileRequest, requestWithFile } from './file-request.ts';
import { t } from './messages.ts';
import { csrfHeader } from './session.ts';

/** Sends a request, and tells how far it is, which `fetch` cannot. Resolves with the answer's text. Throws `DavFailure`. */
export async function sendFile(request: FileRequest): Promise<string> {
  const { signal } = request;
  const own = await csrfHeader(request.method);
  if (signal.aborted) throw new DavFailure(0, t('stopped'));
  const { status, text, waitSeconds } = await requestWithFile({
    ...request,
    headers: { ...request.headers, ...own },
  });
  if (status === 0) throw new DavFailure(0, signal.aborted ? t('stopped') : t('offline'));
  if (status < 300) return text;
  throw new DavFailure(status, reasonIn(text, status), waitSeconds);
}
