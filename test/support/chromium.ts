import { type Browser, chromium } from 'playwright-core';

/** Path of Debian's Chromium. */
const PROGRAM = '/usr/bin/chromium';

const SWITCHES = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // The browser may reach servers on this machine alone.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
];

/** Starts a headless Chromium with a temporary profile. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: PROGRAM, headless: true, args: SWITCHES });
}
