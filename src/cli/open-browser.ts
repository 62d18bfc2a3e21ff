import { spawn } from 'node:child_process';

/**
 * Opens `url` in the person's browser where there is a desktop. Does nothing elsewhere, and a failure is no error: the
 * address is printed too. Without a display, xdg-open would start a browser in the terminal.
 */
export function openBrowser(url: string, environment: NodeJS.ProcessEnv): void {
  const [program, ...args] = opener(url, environment);
  if (program === undefined) return;
  const child = spawn(program, args, { stdio: 'ignore', detached: true, env: environment });
  child.once('error', () => undefined);
  child.unref();
}

function opener(url: string, environment: NodeJS.ProcessEnv): readonly string[] {
  if (process.platform === 'darwin') return ['open', url];
  // Unlike `start`, it takes the address as it is: cmd would obey its "&".
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler', url];
  return environment['DISPLAY'] || environment['WAYLAND_DISPLAY'] ? ['xdg-open', url] : [];
}
