import type { AskedFields } from './metadata.ts';

/** What a listing's cursor says of the fields that its entries are to have; nothing where it asks for none. */
export function withAsked(cursor: string, { explicitMembers, restorable }: AskedFields): string {
  const letters = `${explicitMembers ? 'm' : ''}${restorable ? 'r' : ''}`;
  return letters === '' ? cursor : `asked.${letters}.${cursor}`;
}

const ASKED_CURSOR = /^asked\.(m?r?)\.(.+)$/s;

/** The cursor that `withAsked` was given, and what it was told. */
export function askedIn(cursor: string): { readonly inner: string; readonly asked: AskedFields } {
  const [, letters = '', inner = cursor] = ASKED_CURSOR.exec(cursor) ?? [];
  return { inner, asked: { explicitMembers: letters.includes('m'), restorable: letters.includes('r') } };
}
