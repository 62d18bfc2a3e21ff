/**
 * `npm run build`: bundles each program of davgate, with the libraries it uses, into `dist/`. Loading 400 small files
 * takes longer than all the rest of a start. Modules behind `import()` and those of several programs are in
 * `dist/chunks/`. Their names have hashes, so a running davgate still finds its own after another build.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'rolldown';

/** Started as a command, a thread or a process; `service/library` is imported by the tests of other programs. */
const PROGRAMS = [
  'cli/main',
  'drive/content/block-file-thread',
  'service/library',
  'service/thread',
  'service/previews/render-process',
];

/** Loaded from `node_modules`, because they find their binaries from there. */
const NATIVE = ['bcrypt', 'better-sqlite3', 'sharp'];

await build({
  input: Object.fromEntries(PROGRAMS.map((name) => [name, join(import.meta.dirname, `${name}.ts`)])),
  platform: 'node',
  external: NATIVE,
  transform: { target: 'es2023' },
  output: {
    dir: join(import.meta.dirname, '../dist'),
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  },
  logLevel: 'warn',
});

/**
 * The drive in a browser: a script, the scripts that it loads when they are needed, and a style sheet, whose names have a
 * hash of their content, and the pages that name them: the drive, and the page of an upload link. Files of the build before
 * go, because no page names them any more.
 */
const WEBAPP = join(import.meta.dirname, 'webapp');
const WEBAPP_OUTPUT = join(import.meta.dirname, '../dist/webapp');
rmSync(WEBAPP_OUTPUT, { recursive: true, force: true });
mkdirSync(WEBAPP_OUTPUT, { recursive: true });
await build({
  input: { app: join(WEBAPP, 'main.tsx'), send: join(WEBAPP, 'send-main.tsx') },
  platform: 'browser',
  resolve: { alias: { entities: join(WEBAPP, 'entities.ts') } },
  tsconfig: join(WEBAPP, 'tsconfig.json'),
  transform: { target: 'es2022' },
  output: {
    dir: WEBAPP_OUTPUT,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: 'chunk-[hash].js',
    minify: true,
  },
  logLevel: 'warn',
});
const style = (await lookOfAllPages()) + readFileSync(join(WEBAPP, 'style.css'), 'utf8');
const styleName = `style-${createHash('sha256').update(style).digest('hex').slice(0, 8)}.css`;
writeFileSync(join(WEBAPP_OUTPUT, styleName), style);
for (const [page, script] of [
  ['index.html', /^app-.*\.js$/],
  ['send.html', /^send-.*\.js$/],
]) {
  const scriptName = readdirSync(WEBAPP_OUTPUT).find((name) => script.test(name)) ?? '';
  writeFileSync(
    join(WEBAPP_OUTPUT, page),
    readFileSync(join(WEBAPP, page), 'utf8')
      .replace('{{style}}', `{{base}}/.davgate/app/${styleName}`)
      .replace('{{script}}', `{{base}}/.davgate/app/${scriptName}`),
  );
}

/** Returns `util/look`, which this program cannot import itself: Node 20 reads no TypeScript. */
async function lookOfAllPages() {
  const { output } = await build({
    input: join(import.meta.dirname, 'util/look.ts'),
    write: false,
    logLevel: 'warn',
  });
  const { LOOK } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
  return LOOK;
}

/** The types of `service/library`. */
rmSync(join(import.meta.dirname, '../dist/types'), { recursive: true, force: true });
const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
execFileSync(process.execPath, [join(typescript, 'bin/tsc'), '-p', join(import.meta.dirname, 'service')], {
  stdio: 'inherit',
});
