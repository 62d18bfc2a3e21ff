import type { OutgoingHttpHeaders } from 'node:http';

/** What a refusal says beside its status and its sentence. */
export interface DavErrorDetails {
  /** Local name of the `DAV:` element that names the broken condition (RFC 4918 §16): `no-conflicting-lock`. */
  readonly precondition?: string;
  /** The resources that the condition is about, as `DAV:href`s inside its element. */
  readonly hrefs?: readonly string[];
  readonly headers?: OutgoingHttpHeaders;
  readonly cause?: unknown;
}

/** A refusal in the words of the protocol; `message` tells the person who asked what was wrong and what to do. */
export class DavError extends Error {
  override readonly name = 'DavError';
  readonly precondition: string | undefined;
  readonly hrefs: readonly string[];
  readonly headers: OutgoingHttpHeaders;

  constructor(
    readonly status: number,
    message: string,
    details: DavErrorDetails = {},
  ) {
    super(message, { cause: details.cause });
    this.precondition = details.precondition;
    this.hrefs = details.hrefs ?? [];
    this.headers = details.headers ?? {};
  }
}
