import { type Browser, chromium } from 'playwright-core';

/** Debian's Chromium without windows: it needs half of the CPU time, and has no PDF viewer. */
const SHELL = '/usr/lib/chromium/chromium-headless-shell';

/** Debian's Chromium, which has a PDF viewer. */
const DESKTOP = '/usr/bin/chromium';

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
export function startChromium({ hasPdfViewer = false } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: hasPdfViewer ? DESKTOP : SHELL,
    headless: true,
    args: SWITCHES,
  });
}
