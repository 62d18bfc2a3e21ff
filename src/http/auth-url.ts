import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { readBody } from '../util/whole-body.ts';
import type { Login } from './basic-login.ts';

/** How long the endpoint has for its whole answer, in ms. Clients wait for it with their request. */
const ANSWER_MS_MAX = 5_000;

/** Maximum size of an answer, in bytes: a name and a list of drives. */
const ANSWER_BYTES_MAX = 64 * 1024;

/** The external check gave no answer that can be used. `message` contains no secret. */
export class LoginUnavailable extends Error {
  override readonly name = 'LoginUnavailable';
}

/**
 * Asks `url` about a login: a GET with the login as Basic credentials, like auth_request of nginx. Returns the text of the
 * answer's JSON, `''` without any, for 2xx; `undefined` for 401 and 403. Follows no redirect, which would carry the password
 * to another place. Throws `LoginUnavailable` for everything else.
 */
export async function askAuthUrl(
  url: string,
  { name, password }: Login,
  answerMsMax = ANSWER_MS_MAX,
): Promise<string | undefined> {
  const credentials = Buffer.from(`${name}:${password}`).toString('base64');
  const headers = { Authorization: `Basic ${credentials}`, Accept: 'application/json' };
  const signal = AbortSignal.timeout(answerMsMax);
  try {
    const answer = await answerOf(url, headers, signal);
    const { statusCode: status = 0 } = answer;
    const isJson = /^application\/json\b/i.test(answer.headers['content-type'] ?? '');
    if (status >= 200 && status < 300) return isJson ? await textOf(answer) : done(answer, '');
    if (status === 401 || status === 403) return done(answer, undefined);
    return done(answer, undefined, `answered ${status}; it must answer 2xx, 401 or 403`);
  } catch (error) {
    if (error instanceof LoginUnavailable) throw error;
    if (signal.aborted) throw new LoginUnavailable(`did not answer within ${answerMsMax} ms`);
    const { code } = error as NodeJS.ErrnoException; // the network's own errors
    throw new LoginUnavailable(`cannot be reached (${code ?? 'connection lost'})`);
  }
}

function answerOf(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    request(url, { headers, signal }, resolve).on('error', reject).end();
  });
}

/** Closes the connection of an answer that is not read further. */
function done<T>(answer: IncomingMessage, result: T, problem?: string): T {
  answer.destroy();
  if (problem !== undefined) throw new LoginUnavailable(problem);
  return result;
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const body = await readBody(answer, ANSWER_BYTES_MAX);
  if (!body) return done(answer, '', `sent more than ${ANSWER_BYTES_MAX / 1024} KiB`);
  return body.toString();
}
