import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { succeed } from '../support/command.ts';
import { temporaryDirectory } from '../support/program.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  home = await temporaryDirectory();
  const program = `#!/bin/sh\nexec "${process.execPath}" "${PROJECT_ROOT}/dist/cli/main.js" "$@"\n`;
  await writeFile(join(home.path, 'davgate'), program, { mode: 0o755 });
  await mkdir(join(home.path, 'folder'));
  await writeFile(join(home.path, 'folio.yaml'), '');
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await succeed(join(home.path, 'davgate'), ['completion', shell]);
    await writeFile(join(home.path, shell === 'zsh' ? '_davgate' : `davgate.${shell}`), stdout);
  }
});
afterAll(() => home.remove());

/** Runs a script in a shell that finds davgate and its completions. Returns the lines that it prints. */
async function run(shell: string, args: readonly string[], script: string): Promise<string[]> {
  const environment = { PATH: `${home.path}:${process.env['PATH']}`, HOME: home.path, TERM: 'dumb' };
  const { output } = await succeed(shell, [...args, '-c', script], { directory: home.path, environment });
  return output.split('\n').filter((line) => line !== '');
}

describe('completion in bash', () => {
  const completed = (line: string) => {
    const words = line.split(' ');
    return run(
      'bash',
      ['--norc', '--noprofile'],
      `source davgate.bash
compopt() { echo "option $2"; }
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}) COMP_CWORD=${words.length - 1}
_davgate davgate
printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
  };

  test.each([
    ['davgate lo', ['login', 'locks']],
    ['davgate serve --del', ['--delete']],
    ['davgate --delete ', ['auto', 'permanent', 'trash']],
    ['davgate help comp', ['completion']],
    ['davgate completion ', ['bash', 'zsh', 'fish']],
    ['davgate --listen 127.0.0.1:0 --write-mode b', ['back']],
    ['davgate service account ', ['create', 'list', 'show', 'set', 'remove']],
    ['davgate --config fol', ['option default']],
    ['davgate --data-dir ', ['option dirnames']],
    ['davgate config check fol', ['option default']],
    ['davgate --app-k', []],
    ['davgate login --app-k', ['--app-key']],
  ])('%j is completed to %j', async (line, words) => {
    expect((await completed(line)).sort()).toEqual([...words].sort());
  });
});

describe('completion in fish', () => {
  const completed = (line: string) =>
    run('fish', ['--no-config'], `source davgate.fish; complete -C '${line}'`);

  test('fish completes commands with their summaries, values, files and folders', async () => {
    expect(await completed('davgate lo')).toEqual([
      'locks\tlist or remove the locks of clients',
      'login\tconnect or disconnect an account of the service',
    ]);
    expect(await completed('davgate --delete ')).toEqual(['auto', 'permanent', 'trash']);
    expect(await completed('davgate serve --del')).toEqual([expect.stringMatching(/^--delete\t/)]);
    expect(await completed('davgate --config fol')).toEqual(['folder/', 'folio.yaml']);
    expect(await completed('davgate --data-dir fol')).toEqual([expect.stringMatching(/^folder\//)]);
  });
});

test('an interactive zsh completes commands, values and folders of davgate', async () => {
  const lines = [
    'davgate compl',
    'davgate serve --delete tr',
    'davgate --data-dir fold',
    'davgate locks remo',
  ];
  const typed = lines.map((line) => `zpty -w -n shell $'${line}\\t\\C-t'\nuntil-line BUFFER:`);
  const script = `zmodload zsh/zpty
zpty shell zsh -f -i
until-line() { local line; while zpty -r shell line; do [[ $line = *$1* ]] && { print -r -- "$line"; return; }; done; }
zpty -w shell 'PS1=; fpath=(${home.path} $fpath); autoload -U compinit; compinit -u -D; print rea""dy'
until-line ready
zpty -w shell 'report() { print -r -- "BUFFER:$BUFFER:"; BUFFER=; }; zle -N report; bindkey "^T" report; print bou""nd'
until-line bound
${typed.join('\n')}`;
  const shown = (await run('zsh', ['-f'], script)).flatMap((line) => /BUFFER:(.*):/.exec(line)?.[1] ?? []);
  expect(shown.slice(-lines.length)).toEqual([
    'davgate completion ',
    'davgate serve --delete trash ',
    'davgate --data-dir folder/',
    'davgate locks remove ',
  ]);
});
