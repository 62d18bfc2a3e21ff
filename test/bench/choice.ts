import { parseArgs } from 'node:util';

/** Names of works by the group that they belong to. */
export interface Works {
  readonly remote: readonly string[];
  readonly local: readonly string[];
}

/** A command line that chooses nothing; `message` is one line that says what there is to choose from. */
export class ChoiceError extends Error {
  override readonly name = 'ChoiceError';
}

const OPTIONS = {
  /** `local`: every server on its own disk; `remote`: gateways before the service, slow and limited. */
  group: { type: 'string' },
  /** Only works whose name begins so. */
  only: { type: 'string', default: '' },
} as const;

/** Those of `works` that the words of a command line ask for. Throws `ChoiceError`. */
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
