import { createProgram } from '../../src/cli/program/program.ts';
import { metadataOf } from './shared-stores.ts';

/** Runs `davgate service …` in this process. Returns its output, also if it fails, and its error. */
export async function runAdmin(
  words: readonly string[],
  { data, input = '' }: { readonly data: string; readonly input?: string },
): Promise<{ readonly output: string; readonly error: unknown }> {
  const lines: string[] = [];
  const args = ['service', ...words, '--data', data];
  const metadata = await metadataOf(data);
  const needs = {
    environment: metadata === undefined ? {} : { DAVGATE_METADATA: metadata },
    say: (line: string) => void lines.push(line),
    readPassword: async () => input,
  };
  try {
    await (await createProgram(needs, args)).execute(args);
    return { output: `${lines.join('\n')}\n`, error: undefined };
  } catch (error) {
    return { output: lines.join('\n'), error };
  }
}
