import { foldName, namesOf, type Path, pathOf, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';

/** A folder of a drive, and the path at which a user sees it. */
interface Shown {
  readonly root: Path;
  readonly at: Path;
}

/** Stands in a message for a folder that the user does not see. */
const ABOVE = 'a folder above the drive';

/**
 * Returns `target`, whose methods fail with messages that name the user's own paths: a `FileError` of the drive names
 * those of the drive, and so the folders above the user's root.
 */
export function withShownErrors<Target extends object>(target: Target, { root, at }: Shown): Target {
  if (root === at) return target;
  const shown = (error: unknown): unknown => {
    if (!(error instanceof FileError)) return error;
    const message = shownText(error.message, { root, at });
    return message === error.message ? error : new FileError(error.fault, message, error.details);
  };
  return new Proxy(target, {
    get(of, key) {
      const value: unknown = Reflect.get(of, key);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => withErrors(Reflect.apply(value, of, args), shown);
    },
  });
}

/** Returns a promise or the items of a method, whose errors become those that `shown` returns. */
function withErrors(result: unknown, shown: (error: unknown) => unknown): unknown {
  if (result instanceof Promise)
    return result.catch((error) => {
      throw shown(error);
    });
  return isAsyncIterable(result) ? items(result, shown) : result;
}

async function* items(source: AsyncIterable<unknown>, shown: (error: unknown) => unknown) {
  try {
    yield* source;
  } catch (error) {
    throw shown(error);
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Returns `text` with the paths that the user sees. A path begins at a word, and the root in it at a name. */
function shownText(text: string, { root, at }: Shown): string {
  const names = namesOf(root);
  const above = names.slice(1).map((_, depth) => pathOf(names.slice(0, depth + 1)));
  const roots = root === ROOT ? '/' : `${escaped(root)}(?=/|${END})`;
  const hidden = above.map((path) => `${escaped(path)}(?=${END})`);
  // Longer paths first, and in any letter case, as the service compares them.
  const pattern = new RegExp(`(?<=^|[\\s"'(])(?:${[roots, ...hidden.reverse()].join('|')})`, 'giu');
  return text.replace(pattern, (found, offset: number) => {
    if (foldName(found) !== foldName(root)) return ABOVE;
    const next = text.slice(offset + found.length);
    const isWhole = next === '' || /^[\s,:;.)"']/.test(next);
    if (root === ROOT) return isWhole ? at : `${at}/`;
    return at === ROOT ? (isWhole ? ROOT : '') : at;
  });
}

/** What may follow a path in a message. */
const END = `$|[\\s,:;.)"']`;

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
