import { Command, type CommanderError, type Help, type Option } from 'commander';
import { ConfigError, OPTIONS, type SettingName, type Settings } from '../../config/settings.ts';
import { didYouMean } from '../../util/similar.ts';
import { givenSettings, SettingOption, valueMissing } from './setting-option.ts';

const HELP_HELP = 'show this help';

/** Maximum length of a line of help, in characters. */
const COLUMNS_MAX = 100;

/** Where a command reads and writes. Tests replace it. */
export interface ProgramDeps {
  readonly environment: NodeJS.ProcessEnv;
  /** Prints a line on standard output. */
  readonly say: (line: string) => void;
  /** Reads a password from standard input. */
  readonly readPassword: () => Promise<string>;
}

/** A command of davgate: its usage errors are `ConfigError`s, and its flags may be settings. */
export class CliCommand extends Command {
  /** The command that runs without a further word. */
  defaultCommand: CliCommand | undefined;
  /** Whether help and suggestions leave it out. */
  isHidden = false;
  #exitCode = 0;

  constructor(
    name: string,
    private readonly say: (text: string) => void,
  ) {
    super(name);
    this.helpOption('-h, --help', HELP_HELP);
    this.exitOverride((error) => {
      throw error.exitCode === 0 ? error : this.#usageError(error);
    });
    this.configureOutput({
      writeOut: (text) => this.say(text.trimEnd()),
      // The error is thrown.
      writeErr: () => undefined,
      getOutHelpWidth: () => Math.min(COLUMNS_MAX, process.stdout.columns ?? COLUMNS_MAX),
      getOutHasColors: () => false,
    });
    this.configureHelp({
      commandUsage: () => `${this.path} ${this.usage()}`.replace(/[<>]/g, ''),
      optionTerm,
      subcommandTerm,
      visibleOptions: () => this.#shownOptions(),
    });
    this.helpCommand(false);
  }

  /** Each command sets its own output and errors, which name it. */
  override copyInheritedSettings(): this {
    return this;
  }

  override createCommand(name = ''): CliCommand {
    return new CliCommand(name, this.say);
  }

  /** The words that call this command, like `davgate locks remove`. */
  get path(): string {
    return this.parent instanceof CliCommand ? `${this.parent.path} ${this.name()}` : this.name();
  }

  get children(): readonly CliCommand[] {
    return this.commands.filter((command) => command instanceof CliCommand);
  }

  /** Returns a row of a list in the help, wrapped like those of options. */
  helpRow(term: string, width: number, text: string): string {
    const help = this.createHelp();
    help.prepareContext({ helpWidth: COLUMNS_MAX });
    return help.formatItem(term, width, text, help);
  }

  /** Adds a command that also runs without its name. */
  addDefault(name: string, summary: string): CliCommand {
    this.defaultCommand = this.command(name, { isDefault: true }).summary(summary);
    return this.defaultCommand;
  }

  /** Accepts the flags of all settings of `serve`, and shows those of `shown` in the help. */
  takeSettings(shown: readonly SettingName[] | 'all' = []): this {
    for (const row of OPTIONS) {
      // A flag of this command's own takes precedence.
      if (this.options.some(({ long }) => long === `--${row.name}`)) continue;
      const option = new SettingOption(row, false);
      if (shown !== 'all' && !shown.includes(row.name)) option.hidden = true;
      this.#addSetting(option);
    }
    return this;
  }

  /** Accepts only the flags of these settings, secrets included. */
  takeOnlySettings(names: readonly SettingName[]): this {
    for (const name of names) {
      const row = OPTIONS.find((candidate) => candidate.name === name);
      if (row) this.#addSetting(new SettingOption(row, true));
    }
    return this;
  }

  #addSetting(option: SettingOption): void {
    this.addOption(option);
    this.on(`option:${option.name()}`, (text: string | null) => option.take(text));
  }

  /** The settings that were given as flags. */
  get settings(): Settings {
    return givenSettings(this.options);
  }

  /** Whether the switch `--name` was given. */
  has(name: string): boolean {
    return this.getOptionValue(name) === true;
  }

  /** Runs `work` as this command. It may return an exit code. */
  runs(work: (...operands: string[]) => Promise<number | undefined> | Promise<void>): this {
    return this.action(async () => {
      this.#root.#exitCode = (await work(...this.args)) ?? 0;
    });
  }

  /** Parses the words of a command line and runs the command. Returns its exit code. Throws `ConfigError`. */
  async execute(words: readonly string[]): Promise<number> {
    const [first, ...rest] = words;
    const args =
      first === 'help' ? [...rest, '--help'] : first === 'version' ? ['--version', ...rest] : words;
    this.#refuseUnknownCommand(args);
    try {
      await this.parseAsync(args, { from: 'user' });
      return this.#exitCode;
    } catch (error) {
      if (isDone(error)) return 0;
      throw error;
    }
  }

  get #root(): CliCommand {
    return this.parent instanceof CliCommand ? this.parent.#root : this;
  }

  /** The default command would take the word for an operand. */
  #refuseUnknownCommand([word, ...rest]: readonly string[]): void {
    if (word === undefined || word.startsWith('-') || this.children.length === 0) return;
    const command = this.children.find((child) => child.name() === word || child.aliases().includes(word));
    if (command) {
      command.#refuseUnknownCommand(rest);
      return;
    }
    const names = this.children.filter(({ isHidden }) => !isHidden).map((child) => child.name());
    const words = [...this.path.split(' ').slice(1), word].join(' ');
    const hint = didYouMean(word, names);
    throw new ConfigError(`${words}: no such command${hint || `; ${this.path} --help lists them`}`);
  }

  #usageError({ code, message }: CommanderError): ConfigError {
    const words = this.path.split(' ').slice(1).join(' ');
    const named = /'([^']*)'/s.exec(message)?.[1] ?? '';
    switch (code) {
      case 'commander.unknownOption': {
        const [flag = ''] = named.split('=');
        if (this.#knownFlags().includes(flag))
          return new ConfigError(`${flag}: takes no value; write ${flag}`);
        const hint = didYouMean(flag, this.#knownFlags());
        return new ConfigError(`${flag}: no such option${hint || `; ${this.path} --help lists them`}`);
      }
      case 'commander.optionMissingArgument': {
        const option = this.options.find(({ flags }) => flags === named);
        return new ConfigError(option ? valueMissing(option) : `${named}: a value is missing`);
      }
      case 'commander.missingArgument':
        return new ConfigError(`${words}: ${named} is missing; write ${this.#synopsis}`);
      case 'commander.excessArguments':
        return new ConfigError(`${words}: too many arguments; write ${this.#synopsis}`);
      default:
        return new ConfigError(`${words}: ${message.replace(/^error: /, '')}`);
    }
  }

  #knownFlags(): readonly string[] {
    return this.options.filter((option) => !isRefused(option)).flatMap(({ long }) => (long ? [long] : []));
  }

  get #synopsis(): string {
    const operands = this.registeredArguments.map((argument) =>
      argument.required ? argument.name() : `[${argument.name()}]`,
    );
    return [this.path, ...operands].join(' ');
  }

  /** Returns the values of all options by their names without dashes; `undefined` for those that were not given. */
  get values(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      this.options.map((option) => {
        const value: unknown = this.getOptionValue(option.attributeName());
        return [option.name(), option.negate ? value === false : value];
      }),
    );
  }

  /** The help of a command shows the options of its default command too, but not of the root, which has many. */
  #shownOptions(): Option[] {
    const ofDefault = this.parent ? this.defaultCommand?.options : undefined;
    const shown = [...this.options, ...(ofDefault ?? [])].filter(({ hidden }) => !hidden);
    return [...shown, this.createOption('-h, --help', HELP_HELP)];
  }
}

/** Whether an option exists only to be refused. */
function isRefused(option: Option): boolean {
  return option instanceof SettingOption && option.isRefused;
}

/** Whether commander has shown the help or the version. */
function isDone(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'CommanderError' && 'exitCode' in error && error.exitCode === 0
  );
}

function subcommandTerm(command: Command): string {
  const operands = command.registeredArguments.map((argument) => argument.name());
  return [command.name(), ...operands].join(' ');
}

/** Returns the flags of an option in a help, without the brackets around the value. */
function optionTerm(this: Help, { flags }: Option): string {
  return flags.replace(/[<>]/g, '');
}
