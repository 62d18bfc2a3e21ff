import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import MarkdownIt from 'markdown-it';
import { expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';

const DOCUMENTS = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'src/README.md'],
  ...['test/README.md', 'test/bench/README.md'],
  ...readdirSync(join(PROJECT_ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

const LINES_OF_README_MAX = 120;

type Tokens = ReturnType<InstanceType<typeof MarkdownIt>['parse']>;

const textOf = (document: string) => readFileSync(join(PROJECT_ROOT, document), 'utf8');

function tokensOf(document: string): Tokens {
  return new MarkdownIt({ html: true }).parse(textOf(document), {});
}

/** The targets of a document's links and pictures. */
function linksOf(document: string): string[] {
  return tokensOf(document)
    .flatMap(({ children }) => children ?? [])
    .map((token) => token.attrGet('href') ?? token.attrGet('src'))
    .filter((target) => typeof target === 'string');
}

/** The anchors that GitHub gives a document's headings. */
function anchorsOf(document: string): string[] {
  const tokens = tokensOf(document);
  return tokens.flatMap(({ type }, index) => {
    if (type !== 'heading_open') return [];
    const heading = (tokens[index + 1]?.children ?? []).map(({ content }) => content).join('');
    return [
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ];
  });
}

function isDead(document: string, link: string): boolean {
  if (/^(https?|mailto):/.test(link)) return false;
  const [path = '', anchor] = decodeURI(link).split('#');
  const target = path === '' ? document : join(dirname(document), path);
  if (!existsSync(join(PROJECT_ROOT, target))) return true;
  return anchor !== undefined && !anchorsOf(target).includes(anchor);
}

test('every link of every document leads to a file and a heading that exist', () => {
  const dead = DOCUMENTS.flatMap((document) =>
    linksOf(document)
      .filter((link) => isDead(document, link))
      .map((link) => `${document}: ${link}`),
  );
  expect(dead).toEqual([]);
});

test('every path in the map of src exists', () => {
  const paths = tokensOf('src/README.md')
    .flatMap(({ children }) => children ?? [])
    .filter(({ type, content }) => type === 'code_inline' && /^[a-z]+\/[a-z][a-z/.-]*$/.test(content))
    .map(({ content }) => content);
  expect(paths.length).toBeGreaterThan(20);
  const roots = ['src', '.'].map((folder) => join(PROJECT_ROOT, folder));
  const exists = (path: string) =>
    roots.some((root) => existsSync(join(root, path)) || existsSync(join(root, `${path}.ts`)));
  expect(paths.filter((path) => !exists(path))).toEqual([]);
});

test('every page of docs is reached from docs/index.md', () => {
  const linked = new Set(linksOf('docs/index.md').map((link) => join('docs', link.split('#')[0] ?? '')));
  const pages = DOCUMENTS.filter((name) => name.startsWith('docs/') && name !== 'docs/index.md');
  expect(pages.filter((page) => !linked.has(page))).toEqual([]);
});

test(`README has at most ${LINES_OF_README_MAX} lines, and its first screen has the two commands and how to mount`, () => {
  const lines = textOf('README.md').split('\n');
  expect(lines.length).toBeLessThanOrEqual(LINES_OF_README_MAX);
  const screen = lines.slice(0, 40).join('\n');
  for (const word of ['npm ci && npm start', 'npm ci && npm test', 'macOS', 'Windows', 'davfs2', 'rclone'])
    expect(screen).toContain(word);
});

test('every message in the headings of the troubleshooting page is in the source of davgate', () => {
  const messages = tokensOf('docs/troubleshooting.md')
    .flatMap(({ type }, index, tokens) =>
      type === 'heading_open' ? [tokens[index + 1]?.children ?? []] : [],
    )
    .flatMap((heading) => heading.filter(({ type }) => type === 'code_inline'))
    .map(({ content }) => content);
  expect(messages.length).toBeGreaterThan(15);
  const source = join(PROJECT_ROOT, 'src');
  const sources = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    // Long texts are written as several literals with ` + ` or a backslash between them.
    .map((name) => readFileSync(join(source, name), 'utf8').replaceAll(/' \+\n\s*'|\\\n/g, ''));
  const isIn = (text: string, message: string) =>
    message
      .split('…')
      .map((part) => part.replaceAll(/^[ :;,()."]+|[ :;,()."]+$/g, ''))
      .every((part) => text.includes(part));
  expect(messages.filter((message) => !sources.some((text) => isIn(text, message)))).toEqual([]);
});

test('the figures of the README are those of the benchmarks', () => {
  const [, section = ''] = textOf('README.md').split(/^## How fast$|^## Read on$/m);
  const cells = section.split('\n').filter((line) => line.startsWith('| ') && /\d/.test(line));
  const figures = cells.flatMap((line) =>
    [...line.matchAll(/[\d.,]+ (?:s\b|a second|calls?\b|MiB\/s)/g)].map(([figure]) =>
      figure
        .replaceAll(',', '')
        .replace(' a second', '/s')
        .replace(/ call$/, ' calls'),
    ),
  );
  expect(figures.length).toBeGreaterThan(15);
  const measured = textOf('docs/benchmarks.md');
  expect(figures.filter((figure) => !measured.includes(figure))).toEqual([]);
});
