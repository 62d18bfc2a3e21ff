import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verifyPassword } from '../../src/http/passwords.ts';
import { succeed } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { matchOutput, spawnProgram, temporaryDirectory } from '../support/program.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  home = await temporaryDirectory();
});
afterAll(() => home.remove());

/** Runs the real htpasswd, which writes the line of a user. */
async function lineOf(name: string, password: string, ...options: readonly string[]): Promise<string> {
  const { stdout } = await succeed('htpasswd', ['-nb', ...options, name, password]);
  return stdout.trim();
}

test.each([
  ['bcrypt', ['-B']],
  ['bcrypt of cost 7', ['-B', '-C', '7']],
  ['apr1', ['-m']],
  ['SHA', ['-s']],
])('a hash that htpasswd makes with %s accepts its password and no other', async (_, options) => {
  for (const password of [
    'pässwort: 1',
    'x',
    'a password of more than sixteen bytes, twice and again',
    'q'.repeat(70),
  ]) {
    const hash = (await lineOf('ann', password, ...options)).slice('ann:'.length);
    expect(await verifyPassword(password, hash)).toBe(true);
    for (const wrong of ['', password.slice(1), `${password} `, `${password}\0`, password.toUpperCase()])
      expect(await verifyPassword(wrong, hash)).toBe(false);
  }
});

test('davgate --htpasswd serves the users of the file, and SIGHUP adds and removes users', async () => {
  const [file, config] = [join(home.path, 'htpasswd'), join(home.path, 'davgate.json')];
  await writeFile(
    file,
    `# staff\n\n${await lineOf('ann', 'one', '-B')}\n${await lineOf('guest', 'two', '-m')}\n`,
  );
  const users = [{ name: 'guest', drive: 'main', 'read-only': true }];
  await writeFile(config, JSON.stringify({ drives: { main: {} }, users }));
  const places = ['--data-dir', join(home.path, 'data'), '--cache-dir', join(home.path, 'cache')];
  const { child, output } = spawnProgram([
    ...['--listen', '127.0.0.1:0', '--config', config, '--htpasswd', file, ...places],
  ]);
  await matchOutput(child, output, /Ctrl\+C/);
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(output())?.[0] ?? '';
  const put = async (login: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(login).toString('base64')}`;
    const answer = await fetch(`${url}file`, { method: 'PUT', body: 'x', headers: { authorization } });
    await answer.arrayBuffer();
    return answer.status;
  };
  expect(output()).toContain(`as a user of ${file}`);
  expect(await Promise.all(['ann:one', 'ann:two', 'guest:two', 'joe:three'].map(put))).toEqual([
    201, 401, 403, 401,
  ]);

  await writeFile(file, `${await lineOf('guest', 'two', '-B')}\n${await lineOf('joe', 'three', '-s')}\n`);
  child.kill('SIGHUP');
  await eventually(() => expect(output()).toContain('configuration reloaded'));
  expect(await Promise.all(['ann:one', 'guest:two', 'joe:three'].map(put))).toEqual([401, 403, 204]);

  await writeFile(file, await lineOf('ann', 'one', '-d'));
  child.kill('SIGHUP');
  await eventually(() =>
    expect(output()).toMatch(/line 1: user ann: not a password hash of .*bcrypt.*htpasswd -B/),
  );
  expect(await put('joe:three')).toBe(204);
  child.kill('SIGTERM');
  await once(child, 'close');
});
