import { ConfigError } from './settings.ts';

/** Returns the results of all `parts`. Throws one `ConfigError` for all that fail, after having run every part. */
export function collectAll<T>(parts: readonly (() => T)[]): readonly T[] {
  let problems: readonly string[] = [];
  const results = parts.flatMap((part) => {
    try {
      return [part()];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems = [...problems, ...error.problems];
      return [];
    }
  });
  const [first, ...more] = problems;
  if (first !== undefined) throw new ConfigError(first, ...more);
  return results;
}

/** Returns the results by name. Throws one `ConfigError` for all that fail, after having run every part. */
export function collect<T extends object>(parts: { readonly [Name in keyof T]: () => T[Name] }): T {
  const named = Object.entries(parts) as [string, () => unknown][]; // the type says so
  const results = collectAll(
    named.map(
      ([name, part]) =>
        () =>
          [name, part()] as const,
    ),
  );
  return Object.fromEntries(results) as T; // no part has failed
}
