import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type * as FileSystem from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SpoolBudget, SpoolFile } from '../../../../src/drive/spool/spool-file.ts';
import { SpooledBody } from '../../../../src/drive/spool/spooled-body.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

/** Handles of this file's spool files. */
const opened = vi.hoisted((): FileSystem.FileHandle[] => []);

vi.mock('node:fs/promises', async (load) => {
  const actual = await load<typeof FileSystem>();
  const open: typeof FileSystem.open = async (...how) => {
    const handle = await actual.open(...how);
    opened.push(handle);
    return handle;
  };
  return { ...actual, open };
});

let directory: string;
let file: SpoolFile;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'davgate-spool-'));
  file = new SpoolFile(join(directory, 'body'), new SpoolBudget(100));
  await file.write(Buffer.from('bytes'));
  const [handle] = opened.splice(0);
  const close = handle?.close;
  if (!handle || !close) throw new Error('no spool file was opened');
  handle.close = async () => {
    await close();
    throw new Error('EIO: injected');
  };
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('a spool file that fails to close is deleted all the same', async () => {
  expect(readdirSync(directory)).toEqual(['body']);
  await expect(file.close()).rejects.toThrow('EIO');
  expect(readdirSync(directory)).toEqual([]);
});

test('a spool file that fails to close is logged and fails no write', async () => {
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (...event: unknown[]) => void warnings.push(event) };
  const body = new SpooledBody(sender(), file, { clock: new ManualClock(), log });
  await body.close();
  expect(warnings).toMatchObject([[expect.anything(), { reason: expect.stringContaining('EIO') }]]);
});

async function* sender(): AsyncGenerator<Uint8Array> {}
