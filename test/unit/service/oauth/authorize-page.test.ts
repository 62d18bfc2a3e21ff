import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  AUTHORIZE_PAGE_POLICY,
  codePage,
  consentPage,
  noticePage,
  refusedPage,
  signInPage,
} from '../../../../src/service/oauth/authorize-page.ts';

const HOSTILE = '"><script>alert(1)</script>&\'';

const PAGES: readonly [string, string][] = [
  ['sign-in', signInPage({ appName: HOSTILE, formToken: HOSTILE, email: HOSTILE, problem: HOSTILE })],
  [
    'consent',
    consentPage({
      appName: HOSTILE,
      formToken: HOSTILE,
      accountName: HOSTILE,
      email: HOSTILE,
      wishes: [{ text: HOSTILE, isGrave: true }],
      isLasting: true,
      returnsTo: HOSTILE,
      problem: HOSTILE,
    }),
  ],
  ['code', codePage(HOSTILE, HOSTILE)],
  ['refused', refusedPage(HOSTILE)],
  ['notice', noticePage(HOSTILE, HOSTILE, HOSTILE)],
];

test.each(PAGES)('the %s page escapes all text', (_, page) => {
  expect(page).not.toContain('<script');
  expect(page.replace(/<style>[\s\S]*<\/style>/, '')).not.toContain("'");
});

test.each(PAGES)('the Content-Security-Policy allows exactly the style sheet of the %s page', (_, page) => {
  const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(page) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  expect(AUTHORIZE_PAGE_POLICY).toContain(`style-src 'sha256-${hash}'`);
});

test('the monogram of an app is the first letter of its name in any script, or "?"', () => {
  const letterOf = (appName: string) => /class="monogram"[^>]*>([^<]*)</.exec(codePage(appName, 'x'))?.[1];
  expect([letterOf(' photos'), letterOf('😀 fun'), letterOf('')]).toEqual(['P', '😀', '?']);
});
