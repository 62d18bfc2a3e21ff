import { parseArgs } from 'node:util';

/** Names of the works of each group. */
export interface Works {
  readonly remote: readonly string[];
  readonly local: readonly string[];
  readonly scaling: readonly string[];
  readonly several: readonly string[];
}

/** An error in the command line. `message` is one line that lists the valid choices. */
export class ChoiceError extends Error {
  override readonly name = 'ChoiceError';
}

const OPTIONS = {
  /**
   * `local`: servers on the local disk. `remote`: gateways over a slow and limited service. `scaling`: davgate alone.
   * `several`: gateways of one account.
   */
  group: { type: 'string' },
  /** Prefix of the names of the works to run. */
  only: { type: 'string', default: '' },
} as const;

/** Returns the works that a command line selects. Throws `ChoiceError`. */
export function choose(words: readonly string[], works: Works): Works {
  const { group, only } = valuesOf(words);
  if (group !== undefined && !isGroup(group, works))
    throw new ChoiceError(`--group ${group}: the groups are ${Object.keys(works).join(', ')}`);
  const of = (each: keyof Works, wanted = '') =>
    group === undefined || group === each ? works[each].filter((name) => name.startsWith(wanted)) : [];
  const chosen = {
    remote: of('remote', only),
    local: of('local', only),
    scaling: of('scaling', only),
    several: of('several', only),
  };
  if (Object.values(chosen).flat().length > 0) return chosen;
  const names = [...of('remote'), ...of('local'), ...of('scaling'), ...of('several')]
    .map((name) => `"${name}"`)
    .join(', ');
  throw new ChoiceError(`--only ${only}: no work has a name that begins so; there are ${names}`);
}

function isGroup(word: string, works: Works): word is keyof Works {
  return Object.hasOwn(works, word);
}

function valuesOf(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: OPTIONS }).values;
  } catch (error) {
    throw new ChoiceError(
      `${error instanceof Error ? error.message.split('. ')[0] : error}; there are --group and --only`,
    );
  }
}
