import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { ApiError } from '../../../src/api/errors.ts';
import { attempt, Report } from '../../../src/cli/doctor/report.ts';

/** Returns OpenSSL's message about a server that speaks plain HTTP. */
async function messageOfOpenSsl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const error = await new Promise<Error>((resolve) => connect(port, '127.0.0.1').once('error', resolve));
  server.close();
  return error.message;
}

test('doctor explains https at a port for http in one sentence, without lines of OpenSSL’s source', async () => {
  const message = await messageOfOpenSsl();
  expect(message).toMatch(/:error:/);
  const lines: string[] = [];
  const report = new Report((line) => void lines.push(line));
  const failed = new ApiError('offline', `cannot reach the storage service: ${message}`, {});
  await attempt(report, 'account', { scope: 'account_info.read' }, () => Promise.reject(failed));
  expect(lines).toEqual([
    expect.stringMatching(
      /^FAIL +account +cannot reach the storage service: [a-z ]+; the port does not use TLS: write http:\/\/ in the address, or the port for https$/,
    ),
  ]);
});

test('doctor keeps all results, with their drive, for --json', () => {
  const report = new Report(() => undefined);
  report.ok('node', 'works');
  report.startDrive('work');
  report.fail('login', 'refused\nby the service');
  expect(report.results).toEqual([
    { level: 'ok', check: 'node', message: 'works' },
    { level: 'fail', check: 'login', drive: 'work', message: 'refused by the service' },
  ]);
});
