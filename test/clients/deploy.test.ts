import { copyFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/http/metrics.ts';
import { PROJECT_ROOT } from '../support/build.ts';
import { succeed } from '../support/command.ts';
import { temporaryDirectory } from '../support/program.ts';

const deployed = (name: string) => join(PROJECT_ROOT, 'docs/deploy', name);

/** The greatest exposure that `systemd-analyze security` may report for the unit, of 10. */
const EXPOSURE_MAX = 1.7;

test('systemd accepts the units of docs/deploy and finds the service hardened', async () => {
  const units = [deployed('davgate.service'), deployed('davgate.socket')];
  const { output } = await succeed('systemd-analyze', ['verify', ...units]);
  expect(output).toBe('');
  const words = ['security', '--offline=true', '--no-pager', deployed('davgate.service')];
  const { stdout } = await succeed('systemd-analyze', words);
  const [, exposure] = /Overall exposure level for davgate\.service: ([\d.]+)/.exec(stdout) ?? [];
  expect(Number(exposure)).toBeLessThanOrEqual(EXPOSURE_MAX);
});

test('the commands of docs/install.md make the user, the configuration and the directories of the unit', () => {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/install.md'), 'utf8');
  const unit = readFileSync(deployed('davgate.service'), 'utf8');
  const settingOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const data = `/var/lib/${settingOf('StateDirectory')}`;
  const [, file = ''] = / --config (\S+)/.exec(settingOf('ExecStart')) ?? [];
  const user = settingOf('User');
  const commands = page.split('\n').filter((line) => line.startsWith('sudo '));
  expect(commands).toEqual(
    expect.arrayContaining([
      expect.stringMatching(`^sudo useradd --system --home-dir ${data} .* ${user}$`),
      `sudo install -d -m 700 -o ${user} -g ${user} ${dirname(file)} ${data}`,
      `sudo -u ${user} davgate setup --config ${file} --data-dir ${data}`,
    ]),
  );
});

test('each alert rule of docs/deploy fires for the drive in trouble and not for the quiet one', async () => {
  const directory = await temporaryDirectory();
  copyFileSync(deployed('prometheus-alerts.yml'), join(directory.path, 'prometheus-alerts.yml'));
  copyFileSync(join(PROJECT_ROOT, 'test/support/alerts.test.yml'), join(directory.path, 'alerts.test.yml'));
  const { output } = await succeed('promtool', ['test', 'rules', 'alerts.test.yml'], {
    directory: directory.path,
  });
  expect(output).toContain('SUCCESS');
  await directory.remove();
});

test('every metric in the dashboard and the alert rules of docs/deploy exists', async () => {
  const metrics = createMetrics(() => '');
  metrics.watch({ drives: () => [], blockCacheBytes: () => 0, stateTrouble: () => undefined });
  const text = await metrics.text();
  const names = ['grafana-dashboard.json', 'prometheus-alerts.yml'].flatMap((file) =>
    [...readFileSync(deployed(file), 'utf8').matchAll(/\b(?:davgate|process)_[a-z_]+/g)].map(
      ([name]) => name,
    ),
  );
  expect(names.length).toBeGreaterThan(10);
  const unknown = names.filter((name) => !text.includes(`# TYPE ${name.replace(/_bucket$/, '')} `));
  expect(unknown).toEqual([]);
});

test('davgate_build_info has the version of davgate and of Node', async () => {
  const metrics = createMetrics(() => '');
  metrics.watch({ drives: () => [], blockCacheBytes: () => 0, stateTrouble: () => undefined });
  const { version } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'));
  expect(await metrics.text()).toContain(
    `davgate_build_info{version="${version}",node="${process.versions.node}"} 1`,
  );
});
