import { largest } from '../util/extremes.ts';

/** Text between two columns. */
const GAP = '  ';

/** Returns rows under a head, with each column as wide as its widest cell. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => largest(all.map((row) => row[column]?.length ?? 0)));
  const lineOf = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(GAP);
  return all.map((row) => lineOf(row).trimEnd()).join('\n');
}

/** Replaces control and format characters: clients choose names, and terminals obey such characters. */
export function asPlainText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '�');
}
