import type { ParseArgsConfig } from 'node:util';
import type { Administration } from '../../service/admin/administration.ts';
import type { Values } from './values.ts';

/** Output and input of a command. */
export interface Terminal {
  /** Prints a line. */
  readonly say: (line: string) => void;
  /** Reads a password from standard input. */
  readonly readPassword: () => Promise<string>;
}

/** The parsed arguments of a command, and the objects that it works with. */
export interface AdminCall extends Terminal {
  readonly administration: Administration;
  readonly values: Values;
  /** The argument that is not an option; `''` for a command without one. */
  readonly operand: string;
}

/** A command `davgate service NAME …`. */
export interface AdminCommand {
  /** Two words, like `app create`. */
  readonly name: string;
  /** Synopsis of its arguments. */
  readonly usage: string;
  readonly summary: string;
  /** Help on each option except `--data` and `--help`. */
  readonly help: string;
  readonly options: NonNullable<ParseArgsConfig['options']>;
  /** Number of arguments that are not options. */
  readonly operands: 0 | 1;
  /** Whether it may create the data directory. */
  readonly mayCreate?: boolean;
  readonly run: (call: AdminCall) => void | Promise<void>;
}
