import { createCluster } from '@redis/client';
import {
  type Client,
  type ClientDeps,
  COMMAND_OPTIONS,
  circuitFor,
  optionsFor,
  type Server,
} from './client.ts';
import { slotOf } from './slot.ts';

/** How long a node is away before the others are asked which node has taken over, in ms. */
const REFRESH_AFTER_MS = 1_000;

/** A node that sent nothing for this long is taken for dead, in ms: reconnecting to it finds its successor. */
const SILENCE_MS_MAX = 5_000;

/** Returns a client of the primaries of a cluster. Each has a circuit, so that one that is away stops only its own keys. */
export function clusterClient({ address, onAway, onBack }: ClientDeps): Client {
  let wasReady = false;
  let refusal: unknown;
  const servers = new Map<string, Server>();
  const { socket, ...options } = optionsFor(address, () => wasReady);
  const defaults = { ...options, socket: { ...socket, socketTimeout: SILENCE_MS_MAX } };
  const cluster = createCluster({
    rootNodes: address.hosts.map((host) => ({ socket: { ...host } })),
    defaults,
    RESP: 2,
    topologyRefreshOnReconnectionAttemptStrategy: REFRESH_AFTER_MS,
    commandOptions: COMMAND_OPTIONS,
  });

  const serverAt = (node: string): Server => {
    const known = servers.get(node);
    if (known) return known;
    const ping = async () => {
      const primary = cluster.masters.find((each) => each.address === node);
      if (primary) return (await cluster.nodeClient(primary)).sendCommand(['PING']);
      // It is no primary any more.
      server.circuit.close();
      servers.delete(node);
      return undefined;
    };
    const circuit = circuitFor(ping, { onAway, onBack });
    const server: Server = {
      circuit,
      async send(words, sendOptions, key) {
        if (key !== undefined) return cluster.sendCommand(key, false, [...words], sendOptions);
        const primary = cluster.masters.find((each) => each.address === node);
        if (!primary) throw new Error(`${node} is no primary of the cluster any more`);
        return (await cluster.nodeClient(primary)).sendCommand(words, sendOptions);
      },
    };
    servers.set(node, server);
    circuit.watch();
    return server;
  };

  cluster.on('error', (error) => {
    refusal = error;
  });
  cluster.on('node-error', (error, { host, port }) => {
    if (wasReady) servers.get(`${host}:${port}`)?.circuit.lost(error);
    else refusal = error;
  });
  cluster.on('node-ready', ({ host, port }) => void servers.get(`${host}:${port}`)?.circuit.connected());

  const all = () => cluster.masters.map(({ address: node }) => serverAt(node));
  return {
    async connect() {
      try {
        await cluster.connect();
      } catch (error) {
        throw refusal instanceof Error ? refusal : error;
      }
      wasReady = true;
      all();
    },
    serverOf(key) {
      const node = key === undefined ? undefined : cluster.slots[slotOf(key)]?.master;
      return node ? serverAt(node.address) : (all()[0] ?? serverAt(''));
    },
    servers: all,
    destroy() {
      for (const { circuit } of servers.values()) circuit.close();
      if (cluster.isOpen) cluster.destroy();
    },
  };
}
