import { type Browser, chromium } from 'playwright-core';

/** Debian's browser without its windows: the same pages for half of the CPU time, but no PDF viewer. */
const SHELL = '/usr/lib/chromium/chromium-headless-shell';

/** Debian's browser, which has a PDF viewer. */
const DESKTOP = '/usr/bin/chromium';

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

/** Starts a headless Chromium with a profile of its own, which goes when it is closed. */
export function startChromium({ hasPdfViewer = false } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: hasPdfViewer ? DESKTOP : SHELL,
    headless: true,
    args: SWITCHES,
  });
}
