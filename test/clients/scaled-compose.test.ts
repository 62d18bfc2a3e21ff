import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { PROJECT_ROOT } from '../support/build.ts';
import { command } from '../support/command.ts';
import { runProgram } from '../support/program.ts';

// docs/deploy/scaled/compose.yaml, as far as it can be checked without containers.

const FOLDER = join(PROJECT_ROOT, 'docs/deploy/scaled');

interface Container {
  readonly image: string;
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
}

interface Composition {
  readonly services: Readonly<Record<string, Container>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const text = readFileSync(join(FOLDER, 'compose.yaml'), 'utf8');
const { services, volumes }: Composition = parse(text, { merge: true });

/** Returns the options and variables in the help of a command of davgate. */
async function known(word: string): Promise<readonly string[]> {
  const { output } = await runProgram([word, '--help']);
  return output.match(/--[a-z][a-z0-9-]+|\b(?:DAVGATE|AWS)_[A-Z_]+/g) ?? [];
}

test('every option and variable of davgate in the compose file exists', async () => {
  const davgates = Object.values(services).filter(
    ({ image, command: words }) => image === 'davgate' && words,
  );
  expect(davgates).toHaveLength(4);
  for (const { command: words, environment = {} } of davgates) {
    const [name = '', ...args] = words ?? [];
    const options = args.filter((word) => word.startsWith('--')).map((word) => word.replace(/=.*/, ''));
    const variables = Object.keys(environment).filter((variable) => variable !== 'PGPASSWORD');
    expect(options.length).toBeGreaterThan(2);
    expect(await known(name)).toEqual(expect.arrayContaining([...options, ...variables]));
  }
});

test('every container of the compose file has a pinned version, and volumes, files and containers that exist', () => {
  for (const { image, volumes: mounts = [], depends_on: needs = {} } of Object.values(services)) {
    expect(image).toMatch(/^davgate$|:(\d+\.\d+\.?\d*|RELEASE\.[\dTZ-]+)$/);
    const sources = mounts.map((mount) => mount.split(':')[0] ?? '');
    for (const source of sources)
      expect(source.startsWith('./') ? existsSync(join(FOLDER, source)) : source in volumes, source).toBe(
        true,
      );
    for (const name of Array.isArray(needs) ? needs : Object.keys(needs))
      expect(services).toHaveProperty(name);
  }
  const used = Object.values(services).flatMap(({ volumes: mounts = [] }) => mounts);
  for (const name of Object.keys(volumes))
    expect(used.some((mount) => mount.startsWith(`${name}:`))).toBe(true);
});

test('haproxy accepts its configuration with the addresses of the compose file', async () => {
  const environment = Object.fromEntries(
    Object.entries(services['haproxy']?.environment ?? {}).map(([name, value]) => [name, String(value)]),
  );
  const configuration = join(FOLDER, 'haproxy.cfg');
  const variables = [...readFileSync(configuration, 'utf8').matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name);
  expect(variables.sort()).toEqual(Object.keys(environment).sort());
  const { code, output } = await command('/usr/sbin/haproxy', ['-c', '-f', configuration], { environment });
  expect(code, output).toBe(0);
});
