import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { succeed } from '../support/command.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';

const ROUNDS = effort(1);
/** Returns how many uploads of a round are acknowledged when davgate is killed. */
const acknowledgedAtKill = (round: number) => 40 + (round % 5) * 60;
/** Number of files of a round, or of a copy by rclone: more than are acknowledged when davgate is killed. */
const FILES = Math.min(400, effort(100));

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  program = await startProgram({ dataDirectory: data.path });
});
afterAll(async () => {
  await program?.stop();
  await Promise.all([data.remove(), local.remove()]);
});

interface RequestParts {
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

function ask(method: string, path: string, { headers = {}, body }: RequestParts = {}): Promise<Response> {
  const url = new URL(path.split('/').map(encodeURIComponent).join('/'), program.url);
  return fetch(url, {
    method,
    headers: { authorization: program.authorization, ...headers },
    ...(body !== undefined && { body: new Uint8Array(Buffer.from(body)) }),
  });
}

async function restart(): Promise<void> {
  const port = Number(new URL(program.url).port);
  await program.kill();
  program = await startProgram({ dataDirectory: data.path, port });
}

const contentOf = (round: number, index: number) =>
  pseudoRandomBytes(1 + ((index * 7919) % 30_000), round * 1000 + index);

describe('davgate killed while clients send requests', () => {
  test.each(Array.from({ length: ROUNDS }, (_, round) => round))(
    'every upload that was acknowledged is whole after davgate is killed (round %i)',
    async (round) => {
      await ask('MKCOL', `round ${round}`);
      const acknowledged = new Set<number>();
      let next = 0;
      const upload = async () => {
        for (let index = next++; index < FILES; index = next++) {
          const answer = await ask('PUT', `round ${round}/${index}`, { body: contentOf(round, index) });
          if (answer.status === 201) acknowledged.add(index);
          // The other uploads have requests in flight.
          if (acknowledged.size === acknowledgedAtKill(round)) await restart();
        }
      };
      await Promise.allSettled(Array.from({ length: 8 }, upload));
      expect(acknowledged.size).toBeGreaterThanOrEqual(acknowledgedAtKill(round));
      for (const index of acknowledged) {
        const answer = await ask('GET', `round ${round}/${index}`);
        expect(answer.status, `file ${index}`).toBe(200);
        const bytes = Buffer.from(await answer.arrayBuffer());
        expect(bytes.equals(contentOf(round, index)), `content of file ${index}`).toBe(true);
      }
    },
  );

  test('every file that rclone reports as copied is whole after davgate is killed', async () => {
    const source = join(local.path, 'source');
    await mkdir(source);
    for (let index = 0; index < FILES; index++)
      await writeFile(join(source, `${index}.bin`), contentOf(9, index));
    const rclone = await configureRclone(program);
    const copying = rclone.run('copy', '-v', '--transfers', '4', source, 'drive:from rclone').catch(String);
    await eventually(
      async () => expect((await filesIn('from rclone')).length).toBeGreaterThanOrEqual(30),
      20,
    );
    await restart();
    const log = String(await copying);
    const copied = [...log.matchAll(/: (\d+)\.bin: Copied/g)].map(([, index]) => Number(index));
    expect(copied.length).toBeGreaterThan(0);
    for (const index of copied) {
      const bytes = Buffer.from(await (await ask('GET', `from rclone/${index}.bin`)).arrayBuffer());
      expect(bytes.equals(contentOf(9, index)), `content of ${index}.bin`).toBe(true);
    }
    await rclone.remove();
  });

  describe('after a kill while MOVE replaces a file', () => {
    let acknowledged = 0;
    let token = '';
    beforeAll(async () => {
      await ask('MKCOL', 'moves');
      await ask('PUT', 'moves/target', { body: 'version 0' });
      await ask('PUT', 'kept', { body: 'text' });
      const patch =
        '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><c xmlns="urn:x">blue</c></D:prop></D:set></D:propertyupdate>';
      expect((await ask('PROPPATCH', 'kept', { body: patch })).status).toBe(207);
      const info =
        '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
      const locked = await ask('LOCK', 'kept', { body: info });
      token = locked.headers.get('lock-token') ?? '';
      expect(locked.status).toBe(200);
      expect((await ask('PUT', 'empty', { body: '' })).status).toBe(201);
      let failure: unknown;
      const moving = (async () => {
        for (;;) {
          await ask('PUT', 'moves/new', { body: `version ${acknowledged + 1}` });
          const destination = new URL('moves/target', program.url).href;
          expect((await ask('MOVE', 'moves/new', { headers: { destination } })).status).toBe(204);
          acknowledged++;
        }
      })().catch((error: unknown) => {
        failure = error;
      });
      while (acknowledged < 20 && failure === undefined) await new Promise(setImmediate);
      await restart();
      await moving;
    });

    test('MOVE onto an existing file leaves the old or the new file and no temporary name after davgate is killed', async () => {
      const content = await (await ask('GET', 'moves/target')).text();
      // The last MOVE may be complete although its answer was lost.
      expect([`version ${acknowledged}`, `version ${acknowledged + 1}`]).toContain(content);
      const names = await filesIn('moves');
      expect(names.filter((name) => name !== 'target' && name !== 'new')).toEqual([]);
    });

    test('locks and dead properties are there after davgate is killed', async () => {
      expect((await ask('PUT', 'kept', { body: 'without the lock' })).status).toBe(423);
      expect((await ask('PUT', 'kept', { body: 'with it', headers: { if: `(${token})` } })).status).toBe(204);
      const find = '<D:propfind xmlns:D="DAV:"><D:prop><c xmlns="urn:x"/></D:prop></D:propfind>';
      expect(await (await ask('PROPFIND', 'kept', { headers: { depth: '0' }, body: find })).text()).toContain(
        'blue',
      );
      expect((await ask('UNLOCK', 'kept', { headers: { 'lock-token': token } })).status).toBe(204);
    });

    test('an empty file that was acknowledged is there after davgate is killed', async () => {
      const answer = await ask('GET', 'empty');
      expect([answer.status, await answer.text()]).toEqual([200, '']);
    });
  });

  test('PROPFIND of the whole drive shows no temporary names after davgate was killed', async () => {
    const { stdout } = await succeed('curl', [
      ...['-sS', '-u', `${program.user}:${program.password}`],
      ...['-X', 'PROPFIND', '-H', 'Depth: infinity', program.url],
    ]);
    expect(stdout).toContain('/moves/target<');
    expect(stdout).not.toMatch(/davgate-waiting|\.tmp|\.part/i);
  });
});

/** Returns the names in a folder that PROPFIND shows; none while the folder is missing. */
async function filesIn(folder: string): Promise<string[]> {
  const answer = await ask('PROPFIND', folder, { headers: { depth: '1' } });
  if (answer.status !== 207) return [];
  const hrefs = [...(await answer.text()).matchAll(/<D:href>([^<]*)<\/D:href>/g)];
  return hrefs
    .map(([, href = '']) => decodeURIComponent(href.split('/').pop() ?? ''))
    .filter((name) => name !== '');
}
