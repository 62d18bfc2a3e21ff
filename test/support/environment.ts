import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Variables of the caller that would change what davgate or a foreign program does. */
const FOREIGN = /^(DAVGATE_|LC_|XDG_)|^LANGUAGE$|_proxy$/i;

/** Variables that programs need. Chromium has no UTF-8 file names without a locale. */
const SET = {
  // The caller's own configuration file of davgate would be read.
  XDG_CONFIG_HOME: join(tmpdir(), 'davgate-no-configuration'),
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
  TZ: 'UTC',
  SHELL: '/bin/sh',
  TERM: 'xterm',
};

/** Sets the same environment on every machine, for this process, its tests and the programs they start. */
export function settleEnvironment(): void {
  for (const name of Object.keys(process.env)) if (FOREIGN.test(name)) delete process.env[name];
  Object.assign(process.env, SET);
}
