import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface CommandResult {
  readonly code: number | null;
  /** Standard output and standard error in the order received. */
  readonly output: string;
  readonly stdout: string;
}

export interface CommandOptions {
  readonly input?: string;
  readonly directory?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

/** Runs a foreign program to its end. */
export async function command(
  program: string,
  args: readonly string[],
  { input, directory, environment }: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawn(program, args, { cwd: directory, env: { ...process.env, ...environment } });
  const all: Buffer[] = [];
  const out: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => {
    all.push(chunk);
    out.push(chunk);
  });
  child.stderr.on('data', (chunk: Buffer) => all.push(chunk));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null]; // arguments of 'close'
  return { code, output: Buffer.concat(all).toString(), stdout: Buffer.concat(out).toString() };
}

/** Runs a foreign program like `command`. Throws with its output if its exit code is not 0. */
export async function succeed(
  program: string,
  args: readonly string[],
  options?: CommandOptions,
): Promise<CommandResult> {
  const result = await command(program, args, options);
  if (result.code !== 0)
    throw new Error(`${program} ${args.join(' ')} ended with ${result.code}:\n${result.output}`);
  return result;
}
