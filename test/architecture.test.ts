import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Files that each folder of `src` may import besides its own. Imports go one way:
 * `cli → app → {http, browser, dav} → drive → api → wire, util`, with `state` beside `api`.
 */
const MAY_IMPORT: Record<string, RegExp> = {
  util: /^$/,
  wire: /^util\//,
  config: /^util\//,
  state: /^util\//,
  api: /^(wire|util)\//,
  drive: /^(state|util)\/|^api\/(remote|errors)\.ts$/,
  dav: /^(state|util)\/|^drive\/(files|errors)\.ts$/,
  browser:
    /^(state|util)\/|^drive\/(files|history|changes|errors)\.ts$|^dav\/(errors|exchange|failures|locks\/request-lock)\.ts$/,
  http: /^util\/|^config\/(address|grant)\.ts$/,
  // `service` shares no running code with `api`, because every test would miss a mistake that both have.
  service: /^(http|wire|util)\//,
  webapp: /^util\/(file-name|markdown|markup-lines|url-names)\.ts$/,
  app: /^(?!cli\/)/,
  cli: /./,
};

/** Code that only some files of `src` may contain: what it does, how it is found, and the files. */
const ONLY_IN: { readonly what: string; readonly pattern: RegExp; readonly file: RegExp }[] = [
  // The metrics only count by it.
  { what: 'read the User-Agent', pattern: /['"]user-agent['"]/i, file: /^(dav\/clients|http\/metrics)\.ts$/ },
  {
    what: 'open outgoing connections',
    pattern: /'undici[/']/,
    file: /^(api\/(http|undici-parts\.d)|service\/storage\/blocks\/bucket\/bucket)\.ts$/,
  },
  {
    what: 'connect to PostgreSQL',
    pattern: /import \{[^}]*\b(Client|Pool)\b[^}]*\} from 'pg'/,
    file: /^service\/postgres\/connect\.ts$/,
  },
  { what: 'ask an OpenID Connect provider', pattern: /'openid-client'/, file: /^http\/oidc-provider\.ts$/ },
  {
    // `web-files` checks the address, which a user chooses. The others connect only to addresses of davgate's own, or of its settings.
    what: 'send requests to other servers',
    pattern: /import \{[^}]*\brequest\b[^}]*\} from 'node:https?'/,
    file: /^(service\/save-url\/web-files|cli\/(control-client|doctor\/listener)|http\/(link-proxy|auth-url))\.ts$/,
  },
  {
    what: 'read the time or set a timer',
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|(?<![.\w])setTimeout\(/,
    file: /^(util\/clock|webapp\/.*)\.tsx?$/,
  },
  {
    // `makeFolder` syncs folders that must survive a power cut. The service's disk and the pieces of uploads sync their own
    // without holding up other requests, and caches need none.
    what: 'make folders',
    pattern: /\bmkdir(Sync)?\(/,
    file: /^(util\/make-folder|service\/storage\/blocks\/disk|state\/pieces\/stored-upload|drive\/(content\/block-file|spool\/spool))\.ts$/,
  },
  { what: 'combine abort signals', pattern: /\bAbortSignal\.any\b/, file: /^util\/abort\.ts$/ },
];

/**
 * A spread into arguments: a call takes about 125,000 of them and throws RangeError for more. Spreads into the
 * parameters of davgate's own functions are not found: their callers limit them.
 */
const SPREAD_ARGUMENTS =
  /\.(?:push|unshift|splice|concat)\([^()]*\.\.\.|\bMath\.(?:max|min|hypot)\([^()]*\.\.\.|\bfromC(?:har|odePoint)\w*\(\s*\.\.\./;

/** Maximum length of a file, in lines. */
const LINES_MAX = 400;

const root = join(import.meta.dirname, '..', 'src');
const sources = modulesIn(root);

/** Returns the TypeScript files below a folder, relative to it. */
function modulesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .sort();
}

function textOf(source: string): string {
  return readFileSync(join(root, source), 'utf8');
}

/** Returns the files of `src` that a file imports. */
function importsOf(source: string): string[] {
  return [...textOf(source).matchAll(/(?:\bfrom|\bimport\() ?'(\.[^']+)'/g)].map(([, target = '']) =>
    join(dirname(source), target),
  );
}

/** Returns the import cycles among the files, types included, each as a path that ends where it begins. */
function cyclesAmong(files: readonly string[]): string[] {
  const cycles: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start !== -1) cycles.push([...path.slice(start), file].join(' → '));
    if (start !== -1 || finished.has(file)) return;
    for (const target of importsOf(file)) visit(target, [...path, file]);
    finished.add(file);
  };
  for (const file of files) visit(file, []);
  return cycles;
}

test('no file of src imports itself through others, types included', () => {
  expect(cyclesAmong(sources)).toEqual([]);
});

test('every file of src is in a folder that has an import rule', () => {
  expect(sources.filter((source) => !Object.hasOwn(MAY_IMPORT, dirname(source).split('/')[0] ?? ''))).toEqual(
    [],
  );
});

test('files of src import only from folders that the rule of their own folder allows', () => {
  const upward = sources.flatMap((source) => {
    const folder = source.split('/')[0] ?? '';
    return importsOf(source)
      .filter((target) => !target.startsWith(`${folder}/`) && !MAY_IMPORT[folder]?.test(target))
      .map((target) => `${source} → ${target}`);
  });
  expect(upward).toEqual([]);
});

test.each(ONLY_IN)('only the allowed files of src $what', ({ pattern, file }) => {
  expect(sources.filter((source) => !file.test(source) && pattern.test(textOf(source)))).toEqual([]);
});

test('no file of src spreads a list into the arguments of push, Math.min or a similar function', () => {
  expect(sources.filter((source) => SPREAD_ARGUMENTS.test(textOf(source)))).toEqual([]);
});

test(`no file of src or test has more than ${LINES_MAX} lines`, () => {
  const folder = import.meta.dirname;
  const long = [
    ...sources.map((name) => join(root, name)),
    ...modulesIn(folder).map((name) => join(folder, name)),
  ].filter((path) => readFileSync(path, 'utf8').split('\n').length > LINES_MAX);
  expect(long).toEqual([]);
});

test('no file with concurrent tests uses expectSoon, which throws in them now and then', () => {
  const folder = import.meta.dirname;
  const offenders = modulesIn(folder).filter((name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    return /\btest\.concurrent\b/.test(text) && /\bexpectSoon\(/.test(text);
  });
  expect(offenders).toEqual([]);
});

test('only support/eventually.ts uses vi.waitFor, vi.waitUntil or expect.poll', () => {
  const folder = import.meta.dirname;
  const offenders = modulesIn(folder)
    .filter((name) => name !== join('support', 'eventually.ts'))
    .filter((name) =>
      /\bvi\.wait(For|Until)\(|\bexpect\s*\.poll\(/.test(readFileSync(join(folder, name), 'utf8')),
    );
  expect(offenders).toEqual([]);
});

test('no test in clients/ reads a browser page only once in an expect', () => {
  const folder = join(import.meta.dirname, 'clients');
  const offenders = modulesIn(folder).filter((name) =>
    /\bexpect\(\s*await (page|alone|frame\(\)|button\()/.test(readFileSync(join(folder, name), 'utf8')),
  );
  expect(offenders).toEqual([]);
});
