import { OPTIONS, type Setting, type SettingName, type Settings } from '../config/settings.ts';

/** A command line of `davgate [serve]` without mistakes. */
export interface PlainStart {
  readonly settings: Settings;
  readonly isJson: boolean;
}

/**
 * Parses a start of the drive. Returns `undefined` for everything else, also for a mistake: `program/` parses that and
 * says what is wrong. A start does not load it, because commander takes longer than all other modules of the command.
 */
export function plainStart(words: readonly string[]): PlainStart | undefined {
  const settings = new Map<SettingName, Setting>();
  const rest = words[0] === 'serve' ? words.slice(1) : [...words];
  let isJson = false;
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--json') {
      isJson = true;
      continue;
    }
    const [, flag = '', joined] = /^(--[a-z-]+)(?:=(.*))?$/s.exec(word) ?? [];
    const row = OPTIONS.find(({ name }) => `--${name}` === flag);
    if (!row || 'flag' in row || settings.has(row.name)) return undefined;
    const isSwitch = !('value' in row);
    if (isSwitch && joined !== undefined) return undefined;
    const text = isSwitch ? 'true' : (joined ?? rest.shift());
    if (!text) return undefined;
    settings.set(row.name, { text, origin: flag });
  }
  return { settings, isJson };
}
