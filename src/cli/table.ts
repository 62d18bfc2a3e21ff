import { largest } from '../util/extremes.ts';

/** Between two columns. */
const GAP = '  ';

/** Rows under their head, each column as wide as its widest cell. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => largest(all.map((row) => row[column]?.length ?? 0)));
  const lineOf = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(GAP);
  return all.map((row) => lineOf(row).trimEnd()).join('\n');
}

/** Names hold whatever a client sent, and a terminal obeys some characters. */
export function asPlainText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '�');
}
