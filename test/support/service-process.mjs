/**
 * A process with the storage service, to be killed or measured. Writes its address to standard output, and
 * sends its resource usage, or adds accounts and sends their tokens, when its parent asks.
 */
import { randomUUID } from 'node:crypto';

const [, , serverUrl, clockUrl, dataDirectory, options] = process.argv;
const { startService } = await import(serverUrl);
const { systemClock } = await import(clockUrl);
const complain = (event, fields) => process.stderr.write(`${event} ${JSON.stringify(fields)}\n`);
const service = await startService({
  dataDirectory,
  listen: { host: '127.0.0.1', port: 0 },
  clock: systemClock,
  // No commit is refused for waiting too long on a busy machine.
  commitWaitMs: Number.POSITIVE_INFINITY,
  ...JSON.parse(options),
  // All clients of a test have one address.
  limits: { connectionsPerAddressMax: Number.POSITIVE_INFINITY },
  // Links keep their URL when the port changes.
  publicUrl: 'https://files.example',
  log: { info() {}, warn: complain, error: complain },
});
const { token } = await service.provision();
async function addAccounts(count) {
  const { SCOPES } = await import(new URL('./accounts/scopes.js', serverUrl).href);
  const tokens = [];
  for (let number = 1; number <= count; number++) {
    const names = { givenName: 'Test', surname: String(number), mayDeletePermanently: true };
    const account = await service.addAccount({ email: `${randomUUID()}@example.org`, ...names });
    tokens.push(await service.grant({ accountId: account.id, scopes: SCOPES }));
  }
  return tokens;
}
process.on('message', async (asked) => {
  if (asked.accounts) return process.send(await addAccounts(asked.accounts));
  const { user, system } = process.cpuUsage();
  process.send({ cpuMs: (user + system) / 1000, memoryBytes: process.memoryUsage().rss });
});
process.on('SIGTERM', () => service.close().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ url: service.url, token })}\n`);
