import { rmSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { startChromium } from './chromium.ts';
import { type Program, startProgram, temporaryDirectory } from './program.ts';

// Programs that the test files of one process share. They start at their first use, and end with the process.

let chromium: Promise<Browser> | undefined;
let davgate: Promise<Program> | undefined;

/** Returns a headless Chromium. A test closes the contexts and pages that it opens. */
export async function sharedChromium(): Promise<Browser> {
  exitAtSigterm();
  const running = await chromium;
  if (running?.isConnected()) return running;
  // Playwright ends its browsers, and removes their profiles, when this process exits.
  chromium = startChromium();
  return chromium;
}

/** Returns a davgate with the embedded service. A test writes only to a folder that no other test has. */
export function sharedDavgate(): Promise<Program> {
  davgate ??= startDavgate();
  return davgate;
}

async function startDavgate(): Promise<Program> {
  const { path } = await temporaryDirectory();
  let pid: number | undefined;
  exitAtSigterm();
  process.once('exit', () => {
    // What runs at an exit cannot wait for the end of a process.
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  });
  const program = await startProgram({ dataDirectory: path });
  pid = program.pid;
  return program;
}

let exitsAtSigterm = false;

/** Runs the listeners of `exit` also at SIGTERM, with which vitest ends a process of tests. */
function exitAtSigterm(): void {
  if (exitsAtSigterm) return;
  exitsAtSigterm = true;
  process.once('SIGTERM', () => {
    process.emit('exit', 0);
    // While a test runs, vitest has replaced `process.exit` by a function that throws.
    process.kill(process.pid, 'SIGKILL');
  });
}
