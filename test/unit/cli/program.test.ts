import { describe, expect, test } from 'vitest';
import type { CliCommand } from '../../../src/cli/program/cli-command.ts';
import { createProgram } from '../../../src/cli/program/program.ts';
import { OPTIONS } from '../../../src/config/settings.ts';

/** Runs davgate in this process. Returns its exit code and output, or its error. */
async function run(...words: string[]): Promise<string> {
  const lines: string[] = [];
  const needs = {
    environment: {},
    say: (line: string) => void lines.push(line),
    readPassword: async () => '',
  };
  try {
    const code = await (await createProgram(needs, words)).execute(words);
    return `${code}: ${lines.join('\n')}`;
  } catch (error) {
    return String(error);
  }
}

const whole = () =>
  createProgram({ environment: {}, say: () => undefined, readPassword: async () => '' }, 'all');

/** Returns a command and all below it, without hidden ones. */
function tree(command: CliCommand): CliCommand[] {
  return [command, ...command.children.filter(({ isHidden }) => !isHidden).flatMap(tree)];
}

describe('help', () => {
  test('the help of every command has at most 100 columns, names the command and ends with exit code 0', async () => {
    const paths = tree(await whole()).map(({ path }) => path);
    expect(paths.length).toBeGreaterThan(30);
    for (const path of paths) {
      const help = await run(...path.split(' ').slice(1), '--help');
      expect(help.startsWith(`0: Usage: ${path} [`), path).toBe(true);
      expect(help.split('\n').filter((line) => line.length > 100)).toEqual([]);
    }
  });

  test('davgate help COMMAND prints what davgate COMMAND --help prints, at every depth, and -h and -V what --help and --version print', async () => {
    for (const words of [[], ['locks'], ['locks', 'remove'], ['service', 'app', 'create']])
      expect(await run('help', ...words)).toBe(await run(...words, '--help'));
    expect(await run('-h')).toBe(await run('--help'));
    expect(await run('-V')).toBe(await run('--version'));
  });

  test('davgate serve --help lists each setting with its variable and default', async () => {
    const help = await run('serve', '--help');
    for (const option of OPTIONS) expect(help).toContain(option.variable);
    expect(help.replaceAll(/\s+/g, ' ')).toContain(
      '--delete auto|permanent|trash what DELETE does; auto deletes permanently where account and token allow it, else moves to the trash; default auto [DAVGATE_DELETE]',
    );
  });

  test('the help of a command has its own options and not those of serve', async () => {
    const help = await run('journal', 'export', '--help');
    expect(help).toContain('--data-dir DIR');
    expect(help).not.toContain('--listen');
  });
});

describe('wrong usage', () => {
  test.each([
    ['lcks', 'lcks: no such command (did you mean "locks"?)'],
    ['hurry', 'hurry: no such command; davgate --help lists them'],
    ['complet', 'complet: no such command; davgate --help lists them'],
    ['help srve', 'srve: no such command (did you mean "serve"?)'],
    ['service acount', 'service acount: no such command (did you mean "account"?)'],
    ['journal mend', 'journal mend: no such command; davgate journal --help lists them'],
    ['--lisen x', '--lisen: no such option (did you mean "--listen"?)'],
    ['serve --colour=red', '--colour: no such option; davgate serve --help lists them'],
    ['locks remove --usr x', '--usr: no such option (did you mean "--user"?)'],
    ['--refresh', '--refresh: no such option; davgate serve --help lists them'],
    ['--no-auth=true', '--no-auth: takes no value; write --no-auth'],
    ['--listen', '--listen: a value is missing; write --listen HOST:PORT'],
    ['--listen=', '--listen: a value is missing; write --listen HOST:PORT'],
    ['serve here', 'serve: too many arguments; write davgate serve'],
    ['journal export', 'journal export: ID is missing; write davgate journal export ID FILE'],
    ['journal retry --data-dir x', 'journal retry: ID is missing; write davgate journal retry ID'],
    ['journal export 1a', 'journal export: FILE is missing; write davgate journal export ID FILE'],
    ['locks remove', /^ConfigError: locks remove: no locks selected/],
    ['locks remove --user', '--user: a value is missing; write --user NAME'],
    ['locks --delete never', '--delete: "never" is not one of auto, permanent, trash'],
    ['locks remove --path=', 'locks remove: --path needs a value'],
    ['locks remove a --user b', 'locks remove: a token names one lock; leave out --user and --path'],
    ['service --data x account list', 'service run: too many arguments; write davgate service run'],
    ['login', /^ConfigError: login: the app key is missing; give --app-key/],
    ['login --app-kee x', '--app-kee: no such option (did you mean "--app-key"?)'],
    [
      'login --app-key x --redirect http://example.org/',
      /^ConfigError: --redirect: .* is not an address of this machine/,
    ],
    ['login --app-key x --api-url nowhere', /^ConfigError: --api-url: "nowhere" is not an address/],
    ['mount here --with nfs', '--with: "nfs" is not one of davfs2, rclone, gio'],
    ['mount here --url http://127.0.0.1:1/ --with gio', /^ConfigError: --with: gio chooses the place itself/],
    ['hash-password secret', /^ConfigError: hash-password: takes no arguments(?!.*secret)/],
    ['service --tls-cert x', /ConfigError: --tls-cert: a certificate without its key; give --tls-key too/],
    ['service --tls-key x', /ConfigError: --tls-key: a key without its certificate; give --tls-cert too/],
    ['service --content-listen here', /ConfigError: --content-listen: "here" is not HOST:PORT/],
    ['service --public-url x.org', /ConfigError: --public-url: "x.org" is not an address like https:/],
    [
      'service --content-public-url x.org',
      /ConfigError: --content-public-url: "x.org" is not an address like https:/,
    ],
    ['completion tcsh', /completion: .*Allowed choices are bash, zsh, fish/],
  ])('davgate %s is refused with the reason', async (words, message) => {
    const refused = await run(...words.split(' '));
    if (typeof message === 'string') expect(refused).toBe(`ConfigError: ${message}`);
    else expect(refused).toMatch(message);
  });
});
