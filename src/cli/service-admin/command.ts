import type { Administration } from '../../service/admin/administration.ts';
import type { Values } from './values.ts';

/** The parsed arguments of a command, and the objects that it works with. */
export interface AdminCall {
  readonly administration: Administration;
  readonly values: Values;
  /** The argument that is not an option; `''` for a command without one. */
  readonly operand: string;
  /** Prints a line. */
  readonly say: (line: string) => void;
  /** Reads a password from standard input. */
  readonly readPassword: () => Promise<string>;
}

interface AdminOption {
  /** Its flag and the placeholder of its value, like `--name <NAME>`. */
  readonly flags: string;
  readonly help: string;
  readonly isRepeatable?: boolean;
}

/** A command `davgate service NAME …`. */
export interface AdminCommand {
  /** Two words, like `app create`. */
  readonly name: string;
  readonly summary: string;
  /** Options besides `--data`. */
  readonly options: readonly AdminOption[];
  /** Name of the argument that is not an option. */
  readonly operand?: string;
  /** Text after the options in the help. */
  readonly notes?: string;
  /** Whether it may create the data directory. */
  readonly mayCreate?: boolean;
  readonly run: (call: AdminCall) => void | Promise<void>;
}

/** Option of the commands that print rows. */
export const JSON_OPTION: AdminOption = { flags: '--json', help: 'print JSON' };

/** Prints rows as JSON if `--json` is given, otherwise by `table`. */
export function sayRows({ say, values }: AdminCall, rows: unknown, table: () => string): void {
  say(values['json'] === true ? JSON.stringify(rows, undefined, 2) : table());
}
