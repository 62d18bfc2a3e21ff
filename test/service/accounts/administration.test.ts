import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AdminError, administer } from '../../../src/service/admin/administration.ts';
import { startTestService } from '../../support/service.ts';

test('an operation that fails throws AdminError and changes no account', async () => {
  const { dataDirectory, close } = await startTestService();
  try {
    await administer({ dataDirectory }, { mayCreate: false }, async (administration) => {
      const before = await administration.accounts();
      const email = before[0]?.email ?? '';
      const failures: (() => Promise<unknown>)[] = [
        () => administration.createAccount({ email }, {}),
        () => administration.createAccount({ email: 'new@example.org' }, { text: '7 chars' }),
        () => administration.changeAccount(email, { surname: 'New' }, { text: '7 chars' }),
        () => administration.changeAccount('missing@example.org', { surname: 'New' }),
        () => administration.removeAccount('missing@example.org'),
      ];
      for (const failure of failures) await expect(failure()).rejects.toBeInstanceOf(AdminError);
      expect(await administration.accounts()).toEqual(before);
    });
  } finally {
    await close();
  }
});

test('administer without mayCreate throws AdminError for a directory without a service, and creates nothing', async () => {
  const { dataDirectory, close } = await startTestService();
  try {
    const missing = join(dataDirectory, 'missing');
    const opened = administer({ dataDirectory: missing }, { mayCreate: false }, () => undefined);
    await expect(opened).rejects.toBeInstanceOf(AdminError);
    expect(existsSync(missing)).toBe(false);
  } finally {
    await close();
  }
});
