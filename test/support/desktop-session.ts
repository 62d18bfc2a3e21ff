import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A session bus of D-Bus, under which the daemons of a desktop start when a program asks for them. */
export interface DesktopSession {
  /** Variables of the programs in the session. */
  readonly environment: NodeJS.ProcessEnv;
  /** Ends the bus, and with it the daemons. */
  end(): Promise<void>;
}

/** Starts a session whose home is `home`. */
export async function startDesktopSession(home: string): Promise<DesktopSession> {
  // Programs of KDE start without a screen.
  const environment = { HOME: home, XDG_RUNTIME_DIR: home, QT_QPA_PLATFORM: 'offscreen' };
  // The session ends with its program, which ends with its input.
  const script = 'echo "$DBUS_SESSION_BUS_ADDRESS"; exec cat';
  const session = spawn('dbus-run-session', ['--', 'sh', '-c', script], {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'ignore'],
    // Some daemons outlive the bus: they end with the process group.
    detached: true,
  });
  const [address] = (await once(createInterface(session.stdout), 'line')) as [string]; // arguments of 'line'
  return {
    environment: { ...environment, DBUS_SESSION_BUS_ADDRESS: address },
    end: async () => {
      const ended = once(session, 'exit');
      session.stdin.end();
      await ended;
      endGroup(session.pid);
    },
  };
}

/** Kills the processes of a group, if there are any left: on SIGTERM they would still write into their home. */
function endGroup(id: number | undefined): void {
  try {
    if (id !== undefined) process.kill(-id, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
