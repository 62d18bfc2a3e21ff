import type { CliCommand } from '../../src/cli/program/cli-command.ts';
import { SettingOption } from '../../src/cli/program/setting-option.ts';
import { OPTIONS } from '../../src/config/settings.ts';

/** Escapes text for roff: backslashes, dashes that must stay ASCII, and controls at the start of a line. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1');
}

const item = (term: string, text: string) => `.TP\n.B ${roff(term)}\n${roff(text)}`;

function optionItems(command: CliCommand): string[] {
  return command.options
    .filter(({ hidden }) => !hidden)
    .map(({ flags, description }) => item(flags.replaceAll(/[<>]/g, ''), description));
}

function section(command: CliCommand): string {
  const operands = command.registeredArguments.map((operand) =>
    operand.required ? operand.name() : `[${operand.name()}]`,
  );
  const arguments_ = command.registeredArguments
    .filter(({ description }) => description !== '')
    .map((operand) => item(operand.name(), operand.description));
  const title = [command.path, ...operands].join(' ');
  return [`.SS ${roff(title)}`, roff(command.description()), ...arguments_, ...optionItems(command)].join(
    '\n',
  );
}

/** Returns the manual page davgate(1) in roff. */
export function manualPage(commands: readonly CliCommand[]): string {
  const [program, ...others] = commands;
  const secrets = OPTIONS.flatMap((row) => ('flag' in row ? [item(row.variable, row.help)] : []));
  const shown = others.filter(
    (command) =>
      command.options.some((option) => option instanceof SettingOption) || command.children.length === 0,
  );
  return `.\\" Written by "npm run docs".
.TH DAVGATE 1 "" "davgate" "User Commands"
.SH NAME
davgate \\- mounts cloud storage as a network drive
.SH SYNOPSIS
.B davgate
[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]
.SH DESCRIPTION
${roff(program?.description() ?? '')}
Without a command, davgate serves the drive.
.SH COMMANDS
${shown.map(section).join('\n')}
.SH ENVIRONMENT
Each setting of \\fBdavgate serve\\fR has a variable, which stands in brackets above. A flag takes precedence over its variable,
a variable over the configuration file. Secrets have no flag, because every user of a machine can read command lines:
${secrets.join('\n')}
.SH EXIT STATUS
${item('0', 'success')}
${item('1', 'failure')}
${item('2', 'settings or arguments that cannot be used')}
.SH FILES
${item('$XDG_DATA_HOME/davgate', 'locks, properties, acknowledged writes that wait, the password that davgate made, the login, and the files of the embedded service')}
${item('$XDG_CACHE_HOME/davgate', 'downloaded blocks; may be deleted while davgate is stopped')}
`;
}
