import type { OutgoingHttpHeaders } from 'node:http';

/** A complete answer. `Exchange.answer` adds its length. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<OutgoingHttpHeaders>;
  readonly body: string | Uint8Array | Content | undefined;
}

/** A body of known length. Each piece is read when the system has taken the one before. */
export interface Content {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Why a request is not served. */
export interface Refusal {
  readonly status: number;
  /** One sentence for a person: what was wrong and what to do. */
  readonly text: string;
  readonly headers?: OutgoingHttpHeaders;
}

export function isContent(body: Answer['body']): body is Content {
  return typeof body === 'object' && 'bytes' in body;
}
