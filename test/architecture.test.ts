import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/**
 * What the files of each room may import besides the room itself. The arrows go one way:
 * `cli → app → {http, dav} → drive → api → wire, util`, with `state` beside `api`.
 */
const MAY_IMPORT: Record<string, RegExp> = {
  util: /^$/,
  wire: /^util\//,
  config: /^util\//,
  state: /^util\//,
  api: /^(wire|util)\//,
  drive: /^(state|util)\/|^api\/(remote|errors)\.ts$/,
  dav: /^(state|util)\/|^drive\/(files|errors)\.ts$/,
  http: /^util\/|^config\/address\.ts$/,
  // Shares no running code with `api`: a common mistake would hide from every test.
  service: /^(http|wire|util)\//,
  app: /^(?!cli\/)/,
  cli: /./,
};

/** Words that only one file may use, and what they stand for. */
const ONLY_IN: { readonly what: string; readonly pattern: RegExp; readonly file: RegExp }[] = [
  { what: 'reads the User-Agent', pattern: /['"]user-agent['"]/i, file: /^dav\/clients\.ts$/ },
  { what: 'opens outgoing connections', pattern: /'undici[/']/, file: /^api\/http\.ts$/ },
  {
    // An address that a user can choose has to be checked; the others connect only to addresses of their own.
    what: 'asks other servers',
    pattern: /import \{[^}]*\brequest\b[^}]*\} from 'node:https?'/,
    file: /^(service\/save-url\/web-files|cli\/(control-client|doctor\/listener)|http\/link-proxy)\.ts$/,
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
    file: /^(util\/make-folder|service\/storage\/blocks\/disk|drive\/(content\/block-writer|spool\/spool))\.ts$/,
  },
  { what: 'joins signals', pattern: /\bAbortSignal\.any\b/, file: /^util\/abort\.ts$/ },
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

function textOf(source: string): string {
  return readFileSync(join(root, source), 'utf8');
}

function importsOf(source: string): string[] {
  return [...textOf(source).matchAll(/(?:\bfrom|\bimport\() ?'(\.[^']+)'/g)].map(([, target = '']) =>
    join(dirname(source), target),
  );
}

/** Files that reach themselves through their imports, types included: one path for each circle that is found. */
function circlesAmong(files: readonly string[]): string[] {
  const circles: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start !== -1) circles.push([...path.slice(start), file].join(' → '));
    if (start !== -1 || finished.has(file)) return;
    for (const target of importsOf(file)) visit(target, [...path, file]);
    finished.add(file);
  };
  for (const file of files) visit(file, []);
  return circles;
}

test('no file of src imports itself through others, types included', () => {
  expect(circlesAmong(sources)).toEqual([]);
});

test('every file of src lies in a room', () => {
  expect(sources.filter((source) => !Object.hasOwn(MAY_IMPORT, dirname(source).split('/')[0] ?? ''))).toEqual(
    [],
  );
});

test('files of src import only from the rooms below their own', () => {
  const upward = sources.flatMap((source) => {
    const room = source.split('/')[0] ?? '';
    return importsOf(source)
      .filter((target) => !target.startsWith(`${room}/`) && !MAY_IMPORT[room]?.test(target))
      .map((target) => `${source} → ${target}`);
  });
  expect(upward).toEqual([]);
});

test.each(ONLY_IN)('one place of src $what', ({ pattern, file }) => {
  expect(sources.filter((source) => !file.test(source) && pattern.test(textOf(source)))).toEqual([]);
});

test('no file of src spreads a list into the arguments of push, Math.min and their kin', () => {
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
