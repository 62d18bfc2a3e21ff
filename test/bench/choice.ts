import { parseArgs } from 'node:util';

/** Names of the works of each group. */
export interface Works {
  readonly remote: readonly string[];
  readonly local: readonly string[];
}

/** An error in the command line. `message` is one line that lists the valid choices. */
export class ChoiceError extends Error {
  override readonly name = 'ChoiceError';
}

const OPTIONS = {
  /** `local`: servers on the local disk. `remote`: gateways over a slow and limited service. */
  group: { type: 'string' },
  /** Prefix of the names of the works to run. */
  only: { type: 'string', default: '' },
} as const;

/** Returns the works that a command line selects. Throws `ChoiceError`. */
export function choose(words: readonly string[], works: Works): Works {
  const { group, only } = valuesOf(words);
  if (group !== undefined && group !== 'local' && group !== 'remote')
    throw new ChoiceError(`--group ${group}: the groups are local and remote`);
  const offered: Works = {
    remote: group === 'local' ? [] : works.remote,
    local: group === 'remote' ? [] : works.local,
  };
  const wanted = (name: string) => name.startsWith(only);
  const chosen = { remote: offered.remote.filter(wanted), local: offered.local.filter(wanted) };
  if (chosen.remote.length + chosen.local.length > 0) return chosen;
  const names = [...offered.remote, ...offered.local].map((name) => `"${name}"`).join(', ');
  throw new ChoiceError(`--only ${only}: no work has a name that begins so; there are ${names}`);
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
