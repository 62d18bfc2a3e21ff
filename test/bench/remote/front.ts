/** A process with the real service's hosts, in front of the service at the address in its argument. */
import { playDropboxHosts } from '../../support/dropbox-hosts.ts';

const hosts = await playDropboxHosts(process.argv[2] ?? '');

process.on('message', () => {
  const { calls, refusedCount, receivedBytes } = hosts.traffic;
  process.send?.({ calls: Object.fromEntries(calls), refusedCount, receivedBytes });
});
process.on('disconnect', () => void hosts.close());
process.send?.({ url: hosts.url, environment: hosts.environment });
