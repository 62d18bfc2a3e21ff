/**
 * `npm run build`: bundles each program of davgate, with the libraries it uses, into `dist/`. Loading 400 small files
 * takes longer than all the rest of a start. Modules behind `import()` and those of several programs are in
 * `dist/chunks/`. Their names have hashes, so a running davgate still finds its own after another build.
 */
import { join } from 'node:path';
import { build } from 'rolldown';

/** Started as a command, a thread or a process. */
const PROGRAMS = [
  'cli/main',
  'drive/content/block-file-thread',
  'service/thread',
  'service/previews/render-process',
];

/** Loaded from `node_modules`, because they find their binaries from there. */
const NATIVE = ['better-sqlite3', 'sharp'];

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
