import type { OutgoingHttpHeaders } from 'node:http';
import type { Exchange } from './exchange.ts';

export interface Refusal {
  readonly status: number;
  /** One sentence for a person: what was wrong and what to do. */
  readonly text: string;
  readonly headers?: OutgoingHttpHeaders;
}

/** Answers with a sentence, before the request's body was read. */
export function refuse(exchange: Exchange, { status, text, headers }: Refusal): Promise<void> {
  const type = { 'Content-Type': 'text/plain; charset=utf-8' };
  return exchange.answer({ status, headers: { ...headers, ...type }, body: `${text}\n` });
}
