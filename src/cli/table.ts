import { largest } from '../util/extremes.ts';

/** Text between two columns. */
const GAP = '  ';

/** Returns rows with each column as wide as its widest cell. All rows have as many cells as the first. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => largest(rows.map((row) => row[column]?.length ?? 0)));
  const lineOf = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(GAP);
  return rows.map((row) => lineOf(row).trimEnd()).join('\n');
}

/** Replaces control and format characters: clients choose names, and terminals obey such characters. */
export function asPlainText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '�');
}
