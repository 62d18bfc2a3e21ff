import type { ParseArgsConfig } from 'node:util';
import type { Registry } from '../../service/registry/registry.ts';
import { largest } from '../../util/extremes.ts';
import type { Values } from './values.ts';

/** Who gives a command. */
export interface Terminal {
  /** Prints a line. */
  readonly say: (line: string) => void;
  /** Reads a password from standard input. */
  readonly readPassword: () => Promise<string>;
}

/** What a command works with. */
export interface Surroundings extends Registry, Terminal {
  readonly nowMs: number;
}

/** One thing that can be done to the accounts of a service: `davgate service NAME …`. */
export interface AdminCommand {
  /** Two words, like `app create`. */
  readonly name: string;
  /** What follows them. */
  readonly usage: string;
  readonly summary: string;
  /** A line or more for each option, without the one that all have. */
  readonly help: string;
  readonly options: NonNullable<ParseArgsConfig['options']>;
  /** How many words without dashes it takes. */
  readonly operands: 0 | 1;
  /** Whether it may be the first that is ever done in a data directory. */
  readonly begins?: boolean;
  readonly run: (on: Surroundings, values: Values, operand: string) => void | Promise<void>;
}

/** Columns of text, each as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => largest(rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
