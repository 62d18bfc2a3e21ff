import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command, succeed } from '../support/command.ts';

const PAGE = join(PROJECT_ROOT, 'docs/reference/davgate.1');

test('man shows the manual page, with its settings and commands, without a warning', async () => {
  const { output } = await succeed('man', ['--warnings=all', '-E', 'UTF-8', '-l', PAGE], {
    // Not a terminal: man prints plain text.
    environment: { MANWIDTH: '80' },
  });
  expect(output).toContain('davgate - mounts cloud storage as a network drive');
  for (const part of ['--listen HOST:PORT', 'davgate service token revoke NUMBER', 'DAVGATE_REFRESH_TOKEN'])
    expect(output).toContain(part);
  expect(output).not.toMatch(/warning/i);
});

test('groff finds nothing wrong in the manual page', async () => {
  const checked = await command('groff', ['-man', '-ww', '-Tutf8', '-K', 'utf-8', '-z', PAGE]);
  expect(checked).toMatchObject({ code: 0, output: '' });
});
