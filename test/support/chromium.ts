import { type Browser, chromium } from 'playwright-core';

/** Debian's. */
const PROGRAM = '/usr/bin/chromium';

const SWITCHES = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // The tests' servers are on this machine; nothing else may be reached.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
];

/** A headless Chromium with a profile of its own, which goes when it is closed. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: PROGRAM, headless: true, args: SWITCHES });
}
