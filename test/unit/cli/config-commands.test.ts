import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProgram } from '../../../src/cli/program/program.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { DRIVE_SETTINGS, OPTIONS } from '../../../src/config/settings.ts';

let file: string;
beforeAll(async () => {
  file = join(await mkdtemp(join(tmpdir(), 'davgate-config-')), 'davgate.yaml');
});
afterAll(() => rm(join(file, '..'), { recursive: true }));

/** Runs `davgate config …` in this process. */
async function config(words: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const lines: string[] = [];
  const needs = { environment, say: (line: string) => void lines.push(line), readPassword: async () => '' };
  const args = ['config', ...words];
  const code = await (await createProgram(needs, args)).execute(args);
  return { code, lines };
}

describe('davgate config check', () => {
  test('davgate config check of a valid file prints ok, with exit code 0', async () => {
    await writeFile(file, 'listen: 127.0.0.1:8080\n');
    expect(await config(['check', file])).toEqual({ code: 0, lines: [`${file}: ok`] });
    expect(await config(['check'], { DAVGATE_CONFIG: file })).toEqual({ code: 0, lines: [`${file}: ok`] });
  });

  test('davgate config check prints all problems of a file, one per line, with exit code 1', async () => {
    await writeFile(file, 'lisen: x\nuser: 1\n');
    const problems = [
      `cannot read ${file}: line 1, column 1: unknown key "lisen" (did you mean "listen"?)`,
      `cannot read ${file}: line 2, column 7: "user" must be a text in quotes`,
    ];
    expect(await config(['check', file])).toEqual({ code: 1, lines: problems });
    const { code, lines } = await config(['check', '--config', file, '--json']);
    expect([code, JSON.parse(lines.join(''))]).toEqual([1, { ok: false, problems }]);
  });

  test('davgate config check finds settings that are wrong only in combination', async () => {
    await writeFile(file, 'tls-cert: a\nwrite-mode: back\nredis: redis://h\n');
    const { code, lines } = await config(['check', file]);
    expect([code, lines]).toEqual([
      1,
      [/a certificate without its key/, /"back" keeps writes/].map((reason) => expect.stringMatching(reason)),
    ]);
    await writeFile(file, 'redis: redis://h\n');
    expect(await config(['check', file])).toEqual({
      code: 1,
      lines: [expect.stringMatching(/the files are in the embedded service, .* or leave the Redis out$/)],
    });
  });
});

describe('davgate config show', () => {
  const YAML = `user: ann
redis: redis://bob:SECRET@host
drives: { work: { token: SECRET, root: /Team } }
`;

  test('davgate config show prints each setting with its origin, and no secret', async () => {
    await writeFile(file, YAML);
    const environment = { DAVGATE_PASSWORD: 'SECRET', DAVGATE_CONFIG: file };
    const { lines } = await config(['show', '--json', '--listen', '[::1]:80', '--config', file], environment);
    const rows: unknown = JSON.parse(lines.join(''));
    expect(rows).toEqual(
      expect.arrayContaining([
        { setting: 'listen', value: '[::1]:80', origin: '--listen' },
        { setting: 'password', value: '***', origin: 'DAVGATE_PASSWORD' },
        { setting: 'user', value: 'ann', origin: `"user" in ${file}, line 1, column 7` },
        { setting: 'redis', value: 'redis://***@host', origin: expect.stringContaining('line 2') },
        { setting: 'drives.work.token', value: '***', origin: expect.stringContaining('line 3') },
        { setting: 'drives.work.root', value: '/Team', origin: expect.stringContaining('line 3') },
        { setting: 'write-mode', value: 'through', origin: 'default' },
      ]),
    );
    expect(lines.join('\n')).not.toContain('SECRET');
    const table = (await config(['show'], environment)).lines.join('\n');
    expect(table).toMatch(/^setting +value +origin$/m);
    expect(table).not.toContain('SECRET');
  });
});

describe('davgate config schema', () => {
  const schema = configSchema() as {
    readonly properties: Readonly<Record<string, { readonly enum?: string[]; readonly default?: string }>> & {
      readonly drives: { readonly additionalProperties: { readonly properties: object } };
    };
  }; // the parts that the tests read

  test('the schema has every setting that a file may have, with its choices and default', () => {
    const settings = OPTIONS.map(({ name }) => name).filter((name) => name !== 'config');
    expect(Object.keys(schema.properties).sort()).toEqual(
      ['$schema', 'bandwidth', 'drives', 'users', ...settings].sort(),
    );
    expect(Object.keys(schema.properties.drives.additionalProperties.properties).sort()).toEqual(
      [...DRIVE_SETTINGS].sort(),
    );
    expect(schema.properties['write-mode']).toMatchObject({ enum: ['through', 'back'], default: 'through' });
  });

  test('davgate config schema prints the schema as JSON', async () => {
    expect(JSON.parse((await config(['schema'])).lines.join(''))).toEqual(configSchema());
  });
});
