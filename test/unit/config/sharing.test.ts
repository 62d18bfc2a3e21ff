import { expect, test } from 'vitest';
import type { DriveConfig } from '../../../src/config/drive-config.ts';
import { ConfigError } from '../../../src/config/settings.ts';
import { refuseUnsharedFiles } from '../../../src/config/sharing.ts';
import { settingsOfArguments } from '../../support/settings.ts';

const drive = (name: string, service: DriveConfig['service']): DriveConfig => ({
  name,
  service,
  root: '',
  deletePolicy: 'auto',
});
const url = 'http://service.example';
const remote = drive('remote', {
  ...{ apiUrl: url, contentUrl: url, notifyUrl: url },
  credentials: { token: 't' },
});
const local = drive('local', 'embedded');
const REDIS = settingsOfArguments(['--redis', 'redis://h']);

test('a drive of the embedded service is refused beside --redis, and named if there are several', () => {
  const refuse = (...drives: DriveConfig[]) => refuseUnsharedFiles(REDIS, { drives });
  expect(() => refuse(local)).toThrow(ConfigError);
  expect(() => refuse(local)).toThrow(/^--redis: the files are in the embedded service, which no other/);
  expect(() => refuse(remote, local)).toThrow(/^--redis: drive local has its files in the embedded service/);
});

test('drives of other services are accepted beside --redis, and the embedded service without it', () => {
  refuseUnsharedFiles(REDIS, { drives: [remote] });
  refuseUnsharedFiles(settingsOfArguments([]), { drives: [local] });
});
