import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { OPTIONS } from '../../src/config/settings.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The README's table of settings, as the settings themselves have it: copy it from a failure's "expected". */
function settingsTable(): string {
  // A bar would end the cell.
  const cell = (text: string) => (text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``);
  const rows = OPTIONS.map((option) => {
    const value = 'value' in option ? ` ${option.value}` : '';
    const flag = 'flag' in option ? '' : `--${option.name}${value}`;
    return `| ${cell(flag)} | ${cell(option.variable)} | ${option.help} |`;
  });
  return ['| flag | variable | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

test('the README lists every setting as it is', () => {
  const table = /^\| flag \|.*?(?=\n\n)/ms.exec(readme)?.[0];
  expect(table).toBe(settingsTable());
});

test('the README’s first screen has the two commands and how to mount on each system', () => {
  const screen = readme.split('\n').slice(0, 40).join('\n');
  for (const word of ['npm ci && npm start', 'npm ci && npm test', 'macOS', 'Windows', 'davfs2', 'rclone'])
    expect(screen).toContain(word);
});
