import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { combinations } from '../support/effort.ts';
import { type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';
import { sayToRedis, startRedis } from '../support/redis.ts';
import { type RedisGroup, startCluster, startSentinels } from '../support/redis-groups.ts';
import { createUser, NONE_REFUSED, withUser } from '../support/redis-user.ts';
import { startTestService } from '../support/service.ts';

// A Redis that speaks TLS alone, with a certificate of its own authority, and the ACL user of docs/scaling.md.

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startServer(certificate: Certificate): Promise<Omit<RedisGroup, 'sentinels'>> {
  const server = await startRedis([], certificate);
  return { url: server.url, servers: [server], close: () => server.close() };
}

const KINDS = [
  ['Redis with Sentinels', startSentinels],
  ['one Redis', startServer],
  ['a Redis cluster', startCluster],
] as const;

const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
const SET_COLOUR =
  '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><colour xmlns="x:">red</colour></D:prop></D:set></D:propertyupdate>';

/** Returns what a gateway of a new account is started with: its arguments, environment, and a directory. */
async function gatewayFor(redisUrl: string) {
  const directory = await temporaryDirectory();
  const service = await startTestService();
  closers.push(
    () => directory.remove(),
    () => service.close(),
  );
  const tokenFile = join(directory.path, 'token');
  await writeFile(tokenFile, service.token);
  const args = [
    ...['--token-file', tokenFile, '--api-url', service.url],
    ...['--content-url', service.url, '--notify-url', service.url],
  ];
  return { args, environment: { DAVGATE_REDIS_URL: redisUrl }, directory: directory.path };
}

async function makeAuthority(): Promise<Certificate> {
  const certificate = await makeCertificate(['redis'], '127.0.0.1');
  closers.push(() => certificate.remove());
  return certificate;
}

async function send({ url }: Program, method: string, path: string, headers = {}, body?: string) {
  const answer = await fetch(new URL(path, url), { method, headers, ...(body !== undefined && { body }) });
  return {
    status: answer.status,
    token: answer.headers.get('lock-token') ?? '',
    text: await answer.text(),
  };
}

test.each(combinations(KINDS))(
  'two gateways share locks and properties in %s that speaks only TLS and knows them as the ACL user of the documentation',
  async (_, start) => {
    const certificate = await makeAuthority();
    const group = await start(certificate);
    closers.push(() => group.close());
    await createUser(group.servers);
    const { args, environment, directory } = await gatewayFor(withUser(group.url));
    const startGateway = async (name: string) => {
      const dataDirectory = join(directory, name);
      const program = await startProgram({
        dataDirectory,
        login: false,
        args,
        environment: { ...environment, NODE_EXTRA_CA_CERTS: certificate.file },
      });
      closers.push(() => program.kill());
      return program;
    };
    const [one, other] = [await startGateway('one'), await startGateway('other')];

    const locked = await send(one, 'LOCK', '/file', {}, LOCK);
    expect(locked.status).toBe(201);
    expect((await send(other, 'LOCK', '/file', {}, LOCK)).status).toBe(423);
    const owned = { if: `(${locked.token})` };
    expect((await send(other, 'PUT', '/file', owned, 'content')).status).toBe(204);
    expect((await send(other, 'PROPPATCH', '/file', owned, SET_COLOUR)).text).toContain('200 OK');
    expect((await send(one, 'PROPFIND', '/file', { depth: '0' })).text).toContain('>red<');
    expect((await send(other, 'UNLOCK', '/file', { 'lock-token': locked.token })).status).toBe(204);
    expect((await send(one, 'DELETE', '/file')).status).toBe(204);
    expect(await sayToRedis(group.servers[0], 'CLIENT LIST')).toMatch(/name=davgate .*user=davgate/);
    for (const server of group.servers) expect(await sayToRedis(server, 'ACL LOG')).toBe(NONE_REFUSED);
  },
);

test('a gateway that does not know the authority of Redis does not start, and says how to name it', async () => {
  const group = await startServer(await makeAuthority());
  closers.push(() => group.close());
  const { args, environment, directory } = await gatewayFor(group.url);
  const { code, output } = await runProgram(['--data-dir', directory, '--no-auth', ...args], {
    ...process.env,
    ...environment,
  });
  expect(code).toBe(2);
  expect(output).toMatch(/cannot use the shared state in rediss:.*NODE_EXTRA_CA_CERTS/);
});
