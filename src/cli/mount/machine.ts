import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir, userInfo } from 'node:os';
import { delimiter, join } from 'node:path';

/** A program to run. Secrets are in `environment` or `input`: every user of the machine can read `args`. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Text for standard input. */
  readonly input?: string;
  /** Lets the program use the terminal, to ask for a password. */
  readonly isInteractive?: boolean;
  /** Leaves a process in the background, which would keep its output open. The output is not read. */
  readonly leavesDaemon?: boolean;
}

/** How a program ended. */
export interface Outcome {
  /** `null`: ended by a signal, or not started. */
  readonly code: number | null;
  /** Standard output and standard error where they are read. */
  readonly output: string;
}

/** The machine on which the drive is mounted. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly isRoot: boolean;
  /** The user for whom root mounts: the one who called sudo. */
  readonly uid: number;
  readonly home: string;
  /** Whether a desktop session runs, in which gio mounts. */
  readonly hasSession: boolean;
  has(program: string): boolean;
  run(command: Command): Promise<Outcome>;
  /** Runs `work` with a directory that only this user can open, and removes it afterwards. */
  withPrivateDirectory<T>(work: (directory: string) => Promise<T>): Promise<T>;
}

/** Folders of programs that users often do not have in `PATH`: `mount.davfs` is there. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin'];

export function thisMachine(environment: NodeJS.ProcessEnv): Machine {
  const uid = process.getuid?.() ?? -1;
  const sudoUid = Number(environment['SUDO_UID'] ?? '');
  return {
    platform: process.platform,
    isRoot: uid === 0,
    uid: uid === 0 && sudoUid > 0 ? sudoUid : userInfo().uid,
    home: homedir(),
    hasSession: Boolean(environment['DBUS_SESSION_BUS_ADDRESS']),
    has: (program) =>
      [...(environment['PATH'] ?? '').split(delimiter), ...SYSTEM_FOLDERS].some(
        (folder) => folder !== '' && isExecutable(join(folder, program)),
      ),
    run,
    async withPrivateDirectory(work) {
      const directory = await mkdtemp(join(tmpdir(), 'davgate-mount-'));
      try {
        return await work(directory);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    },
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function run({ program, args, environment, input, isInteractive, leavesDaemon }: Command): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: isInteractive ? 'inherit' : leavesDaemon ? 'ignore' : 'pipe',
      env: { ...process.env, ...environment },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    // A program that ends without reading its input is no failure of ours.
    child.stdin?.on('error', () => undefined).end(input);
    child.once('error', (error) => resolve({ code: null, output: error.message }));
    child.once('close', (code) => resolve({ code, output }));
  });
}
