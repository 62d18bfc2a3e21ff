import type { Option } from 'commander';
import type { CliCommand } from './cli-command.ts';
import { SettingOption } from './setting-option.ts';

/** The scripts ask `davgate complete` for the candidates, so that they are always those of the installed davgate. */
const SCRIPTS = {
  bash: `# Completions of davgate for bash.
_davgate() {
  local line current=\${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default 2>/dev/null ;;
      :directories) compopt -o dirnames 2>/dev/null ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("$1" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$current" 2>/dev/null)
}
complete -F _davgate davgate`,
  zsh: `#compdef davgate
# Completions of davgate for zsh.
_davgate() {
  local line
  local -a candidates
  while IFS= read -r line; do
    case $line in
      :files) _files ;;
      :directories) _files -/ ;;
      *) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done < <("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( \${#candidates} )) && _describe davgate candidates
}
if [[ \${funcstack[1]} = _davgate ]]; then _davgate "$@"; else compdef _davgate davgate; fi`,
  fish: `# Completions of davgate for fish.
function __davgate_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :directories
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c davgate -f -a '(__davgate_complete)'`,
} as const;

/** Returns the script for a shell; `''` for another shell. */
export function completionScript(shell: string | undefined): string {
  return Object.entries(SCRIPTS).find(([name]) => name === shell)?.[1] ?? '';
}

/** Placeholders for files and directories. */
const FILES: ReadonlySet<string> = new Set(['FILE']);
const DIRECTORIES: ReadonlySet<string> = new Set(['DIR']);

/**
 * Returns the candidates for the last of `words`, one a line with a tab before its description. `:files` and
 * `:directories` stand for those of the shell.
 */
export function completionsOf(program: CliCommand, words: readonly string[]): readonly string[] {
  const current = words.at(-1) ?? '';
  const { command, awaiting, operands } = positionAfter(program, words.slice(0, -1));
  const candidates = awaiting
    ? valuesFor(placeholderOf(awaiting))
    : current.startsWith('-')
      ? flagsOf(command)
      : [...namesOf(command), ...operandsOf(command, operands)];
  return candidates.filter((line) => line.startsWith(':') || line.startsWith(current));
}

/** The place in the command line before the word to complete. */
interface Position {
  readonly command: CliCommand;
  /** The option whose value comes next. */
  readonly awaiting: Option | undefined;
  readonly operands: number;
}

function positionAfter(program: CliCommand, words: readonly string[]): Position {
  let position: Position = { command: program, awaiting: undefined, operands: 0 };
  for (const word of words) position = advanced(position, word);
  return position;
}

function advanced({ command, awaiting, operands }: Position, word: string): Position {
  if (awaiting) return { command, awaiting: undefined, operands };
  if (word.startsWith('-')) {
    const option = optionsOf(command).find(({ long, short }) => word === long || word === short);
    return { command, awaiting: option?.required ? option : undefined, operands };
  }
  const child = command.children.find((one) => one.name() === word);
  if (child && operands === 0) return { command: child, awaiting: undefined, operands };
  // "davgate help locks" is about the same commands as "davgate locks".
  return { command, awaiting: undefined, operands: word === 'help' ? operands : operands + 1 };
}

/** The options of a command and of the one that runs without a further word. */
function optionsOf(command: CliCommand): readonly Option[] {
  const ofDefault = command.defaultCommand ? optionsOf(command.defaultCommand) : [];
  return [...command.options, ...ofDefault].filter(
    (option) => !(option instanceof SettingOption && option.isRefused),
  );
}

function flagsOf(command: CliCommand): readonly string[] {
  const flags = optionsOf(command).map((option) => described(option.long ?? '', option.description));
  return [...flags, described('--help', 'show the help')];
}

function namesOf(command: CliCommand): readonly string[] {
  const names = command.children
    .filter((child) => !child.isHidden)
    .map((child) => described(child.name(), child.summary()));
  return command.parent ? names : [...names, described('help', 'show the help of a command')];
}

function operandsOf(command: CliCommand, count: number): readonly string[] {
  const operand = command.registeredArguments[count];
  if (!operand) return [];
  return operand.argChoices ?? valuesFor(operand.name());
}

function placeholderOf({ flags }: Option): string {
  return /<(.*)>$/.exec(flags)?.[1] ?? '';
}

function valuesFor(placeholder: string): readonly string[] {
  if (FILES.has(placeholder)) return [':files'];
  if (DIRECTORIES.has(placeholder)) return [':directories'];
  // Choices are written like auto|permanent|trash.
  return /^[a-z-]+(\|[a-z-]+)+$/.test(placeholder) ? placeholder.split('|') : [];
}

/** Keeps the beginning of a description: shells show candidates in one line. */
function described(word: string, description: string): string {
  const [beginning = ''] = description.split(/[;.:] | \[/);
  return `${word}\t${beginning}`;
}
