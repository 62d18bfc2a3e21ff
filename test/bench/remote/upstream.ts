import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../peers.ts';
import type { Faults } from './profile.ts';

/** The embedded storage service in its own process, behind a TLS front that counts calls. */
export interface Upstream {
  /** URL of the service itself. Calls there are not counted. */
  readonly url: string;
  readonly token: string;
  readonly front: Front;
  stop(): Promise<void>;
}

export interface Front {
  readonly url: string;
  /** Variables that direct rclone's hosts to the front and make child processes trust it. */
  readonly environment: Readonly<Record<string, string>>;
  traffic(): Promise<Traffic>;
}

export interface Traffic {
  readonly calls: Readonly<Record<string, number>>;
  readonly refusedCount: number;
  readonly receivedBytes: number;
}

/** Starts the service on the data in `directory`, and the front. */
export async function startUpstream(directory: string, faults: Faults): Promise<Upstream> {
  const words = Object.entries(faults).flatMap(([name, value]) => ['--fault', `${name}=${value}`]);
  const program = join(PROJECT_ROOT, 'dist/cli/main.js');
  const service = spawn(
    process.execPath,
    [program, 'service', '--listen', '127.0.0.1:0', '--data', directory, '--json', ...words],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const { url, token } = JSON.parse(await saidBy(service)) as { url: string; token: string };
  const child = fork(join(import.meta.dirname, 'front.js'), [url]);
  const [{ environment, url: frontUrl }] = await once(child, 'message');
  return {
    url,
    token,
    front: { url: frontUrl, environment, traffic: () => trafficOf(child) },
    async stop() {
      const ended = [once(service, 'exit'), once(child, 'exit')];
      child.disconnect();
      service.kill('SIGTERM');
      await Promise.all(ended);
    },
  };
}

/** Returns the line that the service prints when it is ready. */
async function saidBy(service: ChildProcess): Promise<string> {
  let text = '';
  service.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  while (!text.includes('\n')) {
    if (service.exitCode !== null) throw new Error(`the service ended with ${service.exitCode}:\n${text}`);
    await Promise.race([once(service.stdout ?? service, 'data'), once(service, 'exit')]);
  }
  return text;
}

async function trafficOf(child: ChildProcess): Promise<Traffic> {
  child.send('traffic');
  const [traffic] = await once(child, 'message');
  return traffic as Traffic; // the front's one kind of answer
}
