import type { OutgoingHttpHeaders } from 'node:http';

/** A whole answer. Its length is told by `Exchange.answer`. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<OutgoingHttpHeaders>;
  readonly body: string | Uint8Array | Content | undefined;
}

/** A body of known length. Its pieces are read one at a time: the next when the system has taken the last. */
export interface Content {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export function isContent(body: Answer['body']): body is Content {
  return typeof body === 'object' && 'bytes' in body;
}
