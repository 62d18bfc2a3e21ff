import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { command, succeed } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import {
  cheapHash,
  PASSWORD,
  type Program,
  runProgram,
  startProgram,
  temporaryDirectory,
} from '../support/program.ts';

/** The devices are authorities of their own: their certificates are self-signed. */
let laptop: Certificate;
let phone: Certificate;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;

const authorities = () => join(directory.path, 'authorities.pem');
const server = (kind: 'pem' | 'key') => join(PROJECT_ROOT, `test/support/certificates/one.${kind}`);
const configuration = () => join(directory.path, 'davgate.json');
const dataDirectory = () => join(directory.path, 'data');

async function configure(more: object): Promise<void> {
  const users = [{ name: 'tester', 'password-hash': cheapHash(PASSWORD), drive: 'one' }];
  const tls = { 'tls-cert': server('pem'), 'tls-key': server('key') };
  await writeFile(configuration(), JSON.stringify({ drives: { one: {} }, users, ...tls, ...more }));
}

beforeAll(async () => {
  [directory, laptop, phone] = await Promise.all([
    temporaryDirectory(),
    makeCertificate(['laptop'], '127.0.0.1'),
    makeCertificate(['phone'], '127.0.0.1'),
  ]);
  await copyFile(laptop.file, authorities());
  await configure({ 'tls-client-ca': authorities() });
  const args = ['--config', configuration()];
  program = await startProgram({ dataDirectory: dataDirectory(), login: 'configured', args });
});
afterAll(async () => {
  await program?.stop();
  await Promise.all([laptop.remove(), phone.remove(), directory.remove()]);
});

/** Returns the status that curl gets with this certificate; 0 without an answer. */
async function statusWith(
  certificate: Certificate | undefined,
  login = `${program.user}:${program.password}`,
) {
  const own = certificate
    ? ['--cert', certificate.file, '--key', certificate.file.replace('cert.', 'key.')]
    : [];
  const args = ['-sSk', '-o', '/dev/null', '-w', '%{http_code}', '-u', login, ...own, program.url];
  return Number((await command('curl', args)).stdout);
}

test('davgate doctor accepts the port of a davgate that demands certificates', async () => {
  const address = ['--listen', new URL(program.url).host, '--config', configuration()];
  const directories = ['--data-dir', dataDirectory(), '--cache-dir', join(directory.path, 'cache')];
  const { output } = await runProgram(['doctor', ...address, ...directories]);
  expect(output).toMatch(/^ok +listener +\S+ is in use by a davgate that is running/m);
});

test('a client needs a certificate of the authority and a login, and a reload reads the authorities again', async () => {
  expect(await statusWith(undefined)).toBe(0);
  expect(await statusWith(phone)).toBe(0);
  expect(await statusWith(laptop)).toBe(200);
  expect(await statusWith(laptop, 'tester:wrong')).toBe(401);
  await succeed('sh', ['-c', `cat ${laptop.file} ${phone.file} > ${authorities()}`]);
  process.kill(program.pid, 'SIGHUP');
  await eventually(async () => expect(await statusWith(phone)).toBe(200));
  expect(await statusWith(laptop)).toBe(200);
  expect(await statusWith(undefined)).toBe(0);
});

test('davgate demands certificates until its next start when a reload no longer finds the setting', async () => {
  await configure({});
  process.kill(program.pid, 'SIGHUP');
  await eventually(() =>
    expect(program.output()).toContain('only at the next start settings="tls-client-ca"'),
  );
  expect(await statusWith(undefined)).toBe(0);
  expect(await statusWith(laptop)).toBe(200);
});
