import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

/** Which files a room may import from: `cli → app → {http, web, dav} → vfs → api → util`, `state` beside `api`. */
const MAY_IMPORT: Record<string, RegExp> = {
  util: /^util\//,
  config: /^(config|util)\//,
  state: /^(state|util)\//,
  api: /^(api|util)\//,
  service: /^(http|service|util|web)\/|^api\/wire(-account)?\.ts$/,
  vfs: /^(vfs|state|util)\/|^api\/(remote|errors)\.ts$/,
  web: /^(web|util)\//,
  dav: /^(dav|state|util|web)\/|^vfs\/(files|errors)\.ts$/,
  http: /^(http|util|web)\/|^config(\.ts$|\/)/,
  cli: /./,
};

/** Words that only one file may use, and what they stand for. */
const ONLY_IN: { readonly what: string; readonly pattern: RegExp; readonly file: RegExp }[] = [
  { what: 'reads the User-Agent', pattern: /['"]user-agent['"]/i, file: /^dav\/clients\.ts$/ },
  { what: 'opens outgoing connections', pattern: /from 'undici'/, file: /^api\/http\.ts$/ },
  {
    // An address that a user can choose has to be checked; the others connect only to addresses of their own.
    what: 'asks other servers',
    pattern: /import \{[^}]*\brequest\b[^}]*\} from 'node:https?'/,
    file: /^(service\/save-url\/web-files|cli\/(control-client|doctor\/listener)|http\/link-site)\.ts$/,
  },
  {
    what: 'reads the time',
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|(?<![.\w])setTimeout\(/,
    file: /^util\/clock\.ts$/,
  },
  {
    // What must survive a power cut is made by `makeFolder`; the service's disk syncs its own, the caches may go.
    what: 'makes folders that no power cut takes back',
    pattern: /\bmkdir(Sync)?\(/,
    file: /^(util\/make-folder|service\/storage\/blocks\/disk|vfs\/(content\/block-writer|upload\/spill))\.ts$/,
  },
  { what: 'joins signals', pattern: /\bAbortSignal\.any\b/, file: /^util\/linked-signal\.ts$/ },
];

/**
 * A spread into arguments: a call takes some 125,000 of them and throws RangeError for more. What is spread into the
 * parameters of our own functions is bounded by their callers.
 */
const SPREAD_ARGUMENTS =
  /\.(?:push|unshift|splice|concat)\([^()]*\.\.\.|\bMath\.(?:max|min|hypot)\([^()]*\.\.\.|\bfromC(?:har|odePoint)\w*\(\s*\.\.\./;

const LINES_MAX = 400;

const root = join(import.meta.dirname, '..', 'src');
const sources = modulesIn(root);

function modulesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort();
}

describe.each(sources)('src/%s', (source) => {
  const text = readFileSync(join(root, source), 'utf8');

  test(`has at most ${LINES_MAX} lines`, () => {
    expect(text.split('\n').length).toBeLessThanOrEqual(LINES_MAX);
  });

  test('spreads no list into the arguments of push, Math.min and their kin', () => {
    expect(text).not.toMatch(SPREAD_ARGUMENTS);
  });

  test('imports only from rooms below', () => {
    const allowed = MAY_IMPORT[source.split('/')[0] ?? ''] ?? /./;
    for (const [, target = ''] of text.matchAll(/(?:\bfrom|\bimport\() ?'(\.[^']+)'/g)) {
      expect(relative(root, join(root, dirname(source), target))).toMatch(allowed);
    }
  });

  test.each(ONLY_IN)('$what only where it should', ({ pattern, file }) => {
    if (!file.test(source)) expect(text).not.toMatch(pattern);
  });
});

test('how long a test waits for what comes by itself is said in one place', () => {
  const folder = import.meta.dirname;
  const impatient = modulesIn(folder)
    .filter((name) => name !== join('support', 'eventually.ts'))
    .filter((name) =>
      /\bvi\.wait(For|Until)\(|\bexpect\s*\.poll\(/.test(readFileSync(join(folder, name), 'utf8')),
    );
  expect(impatient).toEqual([]);
});

test('tests look at a browser’s page until it shows what they expect, not once after an action', () => {
  const folder = join(import.meta.dirname, 'clients');
  const impatient = modulesIn(folder).filter((name) =>
    /\bexpect\(\s*await (page|alone|frame\(\)|button\()/.test(readFileSync(join(folder, name), 'utf8')),
  );
  expect(impatient).toEqual([]);
});

test.each(modulesIn(import.meta.dirname))(`test/%s has at most ${LINES_MAX} lines`, (name) => {
  const text = readFileSync(join(import.meta.dirname, name), 'utf8');
  expect(text.split('\n').length).toBeLessThanOrEqual(LINES_MAX);
});
