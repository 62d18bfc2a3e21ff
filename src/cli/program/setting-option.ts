import { Option } from 'commander';
import {
  ConfigError,
  helpOf,
  OPTIONS,
  type Setting,
  type SettingName,
  type Settings,
} from '../../config/settings.ts';

type SettingRow = (typeof OPTIONS)[number];

/** The flag of a setting. It keeps the value as it was written. */
export class SettingOption extends Option {
  readonly setting: SettingName;
  #given: Setting | undefined;

  constructor(
    row: SettingRow,
    /** Whether a secret's flag is accepted too: `davgate login` takes the app's key, which is none of its own. */
    private readonly isForSecrets: boolean,
  ) {
    super(`--${row.name}${'value' in row ? ` <${row.value}>` : ''}`, `${helpOf(row)} [${row.variable}]`);
    this.setting = row.name;
    this.hidden = this.isRefused;
  }

  /** Whether the flag only tells that command lines are public. */
  get isRefused(): boolean {
    return !this.isForSecrets && rowOf(this.setting).flag === false;
  }

  get given(): Setting | undefined {
    return this.#given;
  }

  /** Takes the value on the command line; `null` for a switch. Throws `ConfigError`. */
  take(text: string | null): void {
    const flag = this.long ?? '';
    if (this.isRefused)
      throw new ConfigError(
        `${flag}: command lines are public; use the variable ${rowOf(this.setting).variable} or a file for --config`,
      );
    if (this.#given) throw new ConfigError(`${flag}: given twice; give it once`);
    if (text === '') throw new ConfigError(valueMissing(this));
    this.#given = { text: text ?? 'true', origin: flag };
  }
}

/** Returns the message for an option whose value is missing. */
export function valueMissing({ flags }: Option): string {
  const [flag = ''] = flags.split(' ');
  return `${flag}: a value is missing; write ${flags.replace(/[<>]/g, '')}`;
}

/** Returns the settings among the options of a command that were given. */
export function givenSettings(options: readonly Option[]): Settings {
  const settings = new Map<SettingName, Setting>();
  for (const option of options)
    if (option instanceof SettingOption && option.given) settings.set(option.setting, option.given);
  return settings;
}

function rowOf(name: SettingName): {
  readonly variable: string;
  readonly flag?: false;
  readonly help: string;
} {
  // Each setting has a row.
  return OPTIONS.find((row) => row.name === name) ?? OPTIONS[0];
}
