import { expect, test } from 'vitest';
import { schemaText } from '../../src/cli/config-commands.ts';
import type { CliCommand } from '../../src/cli/program/cli-command.ts';
import { createProgram } from '../../src/cli/program/program.ts';
import { helpOf, OPTIONS } from '../../src/config/settings.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { SWITCHES } from '../../src/service/faults/switches.ts';
import { manualPage } from '../support/manual-page.ts';

/** The pages are written by `npm run docs`, which runs this file with `--update`. */
const page = (name: string) => `../../docs/${name}.md`;

// A bar would end the cell.
const cell = (text: string) => text.replaceAll('|', '\\|');
const code = (text: string) => (text === '' ? '' : `\`${cell(text)}\``);
const row = (...cells: string[]) => `| ${cells.join(' | ')} |`;

/** Returns a command and all below it, without hidden ones. */
function withChildren(command: CliCommand): readonly CliCommand[] {
  return [command, ...command.children.filter(({ isHidden }) => !isHidden).flatMap(withChildren)];
}

/** Returns the program as `davgate WORDS` makes it, which prints with `say`. */
function programFor(words: readonly string[] | 'all', say: (line: string) => void = () => undefined) {
  return createProgram({ environment: {}, say, readPassword: async () => '' }, words);
}

/** Returns all commands of davgate. */
async function allCommands(): Promise<readonly CliCommand[]> {
  return withChildren(await programFor('all'));
}

// test/clients/command-line.test.ts shows that the built program prints such help.
test('docs/reference/cli.md has the help of every command as davgate prints it', async () => {
  const sections: string[] = [];
  for (const { path } of await allCommands()) {
    const words = [...path.split(' ').slice(1), '--help'];
    const lines: string[] = [];
    const program = await programFor(words, (line) => lines.push(line));
    expect(await program.execute(words)).toBe(0);
    sections.push(`## ${path}\n\n\`\`\`\n${lines.join('\n').trim()}\n\`\`\``);
  }
  const text = `# Command line

What each command prints with \`--help\`; \`man davgate\` has the same in one page. Exit codes: 0 success, 1 failure, 2 settings
or arguments that cannot be used. The settings of \`davgate serve\` are explained in [settings](config.md).

\`davgate completion bash\`, \`zsh\` or \`fish\` prints the completions for a shell.

${sections.join('\n\n')}
`;
  await expect(text).toMatchFileSnapshot(page('reference/cli'));
});

test('docs/reference/davgate.1 is the manual page of all commands and settings', async () => {
  await expect(manualPage(await allCommands())).toMatchFileSnapshot('../../docs/reference/davgate.1');
});

test('docs/reference/config.schema.json is the schema that davgate config schema prints', async () => {
  await expect(`${schemaText()}\n`).toMatchFileSnapshot('../../docs/reference/config.schema.json');
});

test('docs/reference/config.md lists every setting with its flag, variable and key', async () => {
  const rows = OPTIONS.map((option) => {
    const value = 'value' in option ? ` ${option.value}` : '';
    const flag = 'flag' in option ? '' : `--${option.name}${value}`;
    return row(code(option.name), code(flag), code(option.variable), cell(helpOf(option)));
  });
  const text = `# Settings

A flag takes precedence over its variable, a variable over the configuration file (\`--config\`, YAML or JSON with the names
below as keys). An invalid or empty value ends davgate with exit code 2 and one line that names the setting and how to fix it. A setting
without a flag is a secret: command lines are public.

${row('name', 'flag', 'variable', 'meaning')}
| --- | --- | --- | --- |
${rows.join('\n')}

A configuration file may also have \`drives\` and \`users\`: [users and drives](../users-and-drives.md). \`davgate config check\`
finds all its problems at once, \`davgate config show\` prints the settings in effect and where each comes from, and
\`davgate config schema\` prints its [JSON schema](config.schema.json).
`;
  await expect(text).toMatchFileSnapshot(page('reference/config'));
});

test('docs/reference/metrics.md lists every metric of davgate', async () => {
  const metrics = createMetrics(() => '');
  metrics.watch({ drives: () => [], blockCacheBytes: () => 0, stateTrouble: () => undefined });
  const lines = (await metrics.text()).split('\n');
  const types = new Map(
    lines.flatMap((line) => {
      const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
      return name ? [[name, type] as const] : [];
    }),
  );
  const rows = lines.flatMap((line) => {
    const [, name = '', help = ''] = /^# HELP (davgate_\S+) (.*)/.exec(line) ?? [];
    return name ? [row(code(name), types.get(name) ?? '', cell(help))] : [];
  });
  const text = `# Metrics

\`GET /.davgate/metrics\` answers in the text format of Prometheus ([who may read it](../monitoring.md#metrics)).

${row('metric', 'type', 'meaning')}
| --- | --- | --- |
${rows.sort().join('\n')}

\`process_*\` and \`nodejs_*\` tell memory, processor time and the event loop's delay.
`;
  await expect(text).toMatchFileSnapshot(page('reference/metrics'));
});

test('docs/service/faults.md lists every fault', async () => {
  const rows = Object.entries(SWITCHES).map(([name, { help }]) => row(code(name), cell(help)));
  const text = `# Faults

Test your own client of the storage API against failures:

\`\`\`sh
davgate service --fault error-write-share=0.05 --fault latency-read-ms=50
\`\`\`

Each fault is a number, and 0 (off) by default. Shares go from 0 to 1. A call that downloads is a read, a call that changes
something is a write, every other call is metadata.

${row('fault', 'effect')}
| --- | --- |
${rows.join('\n')}
`;
  await expect(text).toMatchFileSnapshot(page('service/faults'));
});
