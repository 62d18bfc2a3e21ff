/**
 * Compiles better-sqlite3 on Node 20; davgate's `postinstall` script. On Node 22 and later the binary inside the npm
 * package is used and this does nothing. That binary asks for Node-API 10 and crashes Node 20, which speaks version 9;
 * its sources compile for version 9 with `boxed-strings.hpp` before them. Needs make, Python and a C++20 compiler.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The first version of Node that loads the binary inside the npm package. */
const NODE_WITH_BINARY = 22;

const library = dirname(createRequire(import.meta.url).resolve('better-sqlite3/package.json'));
const nodeVersion = Number.parseInt(process.versions.node, 10);

if (nodeVersion < NODE_WITH_BINARY && !existsSync(join(library, 'build/Release/better_sqlite3.node')))
  compile();

function compile() {
  // npm tells its scripts where its own node-gyp is.
  const nodeGyp = process.env['npm_config_node_gyp'];
  if (!nodeGyp) fail(`run it as "npm run postinstall" in davgate's folder`);
  const header = join(import.meta.dirname, 'boxed-strings.hpp');
  // Node's own headers when they are installed; otherwise node-gyp fetches them from nodejs.org.
  const home = dirname(dirname(process.execPath));
  const headers = existsSync(join(home, 'include/node/node_api.h')) ? [`--nodedir=${home}`] : [];
  process.stdout.write(`compiling SQLite for Node ${nodeVersion}: this takes a few minutes\n`);
  const { status } = spawnSync(
    process.execPath,
    [nodeGyp, 'rebuild', '--release', '--force_build=1', ...headers],
    {
      cwd: library,
      stdio: 'inherit',
      env: { ...process.env, CXXFLAGS: `-UNAPI_VERSION -DNAPI_VERSION=9 -include "${header}"` },
    },
  );
  if (status !== 0) fail('see the compiler’s messages above');
  for (const intermediate of ['.deps', 'obj', 'obj.target', 'sqlite3.a', 'test_extension.node'])
    rmSync(join(library, 'build/Release', intermediate), { recursive: true, force: true });
}

/**
 * @param {string} reason
 * @returns {never}
 */
function fail(reason) {
  process.stderr.write(`cannot compile better-sqlite3: ${reason}; Node 22 and later need no compiler\n`);
  process.exit(1);
}
