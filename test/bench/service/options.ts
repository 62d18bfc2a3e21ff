import { parseArgs } from 'node:util';
import { ChoiceError } from '../choice.ts';

/** Where the measured services have their metadata. */
export const KINDS = ['sqlite', 'postgres'] as const;
export type Kind = (typeof KINDS)[number];

export interface BenchOptions {
  readonly kinds: readonly Kind[];
  /** Names of the works to run. */
  readonly works: readonly string[];
  /** How often each work is measured; its figure is the median. */
  readonly rounds: number;
  /** Share of the full sizes, for a trial of the benchmark itself. */
  readonly scale: number;
}

const OPTIONS = {
  /** `sqlite` or `postgres`; both, one after the other in each work, by default. */
  metadata: { type: 'string' },
  /** Prefix of the names of the works to run. */
  only: { type: 'string', default: '' },
  rounds: { type: 'string', default: '3' },
  scale: { type: 'string', default: '1' },
} as const;

/** Reads the command line of `npm run bench:service`. Throws `ChoiceError`. */
export function benchOptions(words: readonly string[], works: readonly string[]): BenchOptions {
  const { metadata, only, rounds, scale } = valuesOf(words);
  const kinds = KINDS.filter((kind) => metadata === undefined || metadata === kind);
  if (kinds.length === 0) throw new ChoiceError(`--metadata ${metadata}: there are ${KINDS.join(', ')}`);
  const chosen = works.filter((name) => name.startsWith(only));
  if (chosen.length === 0)
    throw new ChoiceError(
      `--only ${only}: no work has a name that begins so; there are ${works.map((name) => `"${name}"`).join(', ')}`,
    );
  if (!/^[1-9]\d?$/.test(rounds))
    throw new ChoiceError(`--rounds ${rounds}: not a number from 1 to 99; write it like 3`);
  const share = Number(scale);
  if (!(share > 0 && share <= 1))
    throw new ChoiceError(`--scale ${scale}: not a share of the full sizes; write it like 0.02`);
  return { kinds, works: chosen, rounds: Number(rounds), scale: share };
}

function valuesOf(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: OPTIONS }).values;
  } catch (error) {
    throw new ChoiceError(
      `${error instanceof Error ? error.message.split('. ')[0] : error}; there are --metadata, --only, --rounds and --scale`,
    );
  }
}
