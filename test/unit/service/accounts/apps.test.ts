import { expect, test } from 'vitest';
import { redirectUriProblem } from '../../../../src/service/accounts/apps.ts';

test.each([
  'https://app.example/callback',
  'https://app.example',
  'https://app.example:8443/cb?from=davgate',
  'http://localhost:53682/',
  'http://127.0.0.1:8080/cb',
  'http://[::1]:8080/cb',
  'com.example.app:/oauth',
  'db-abc123://auth',
])('the redirect URI %s is accepted', (uri) => {
  expect(redirectUriProblem(uri)).toBeUndefined();
});

test.each([
  ['http://app.example/', 'must begin with https://'],
  ['http://localhost.evil.example/', 'must begin with https://'],
  ['http://127.0.0.1.evil.example/', 'must begin with https://'],
  ['javascript:alert(1)', 'must begin with https://'],
  ['data:text/html,x', 'must begin with https://'],
  ['file:///etc/passwd', 'must begin with https://'],
  ['blob:https://app.example/x', 'must begin with https://'],
  ['myapp://callback', 'must begin with https://'],
  ['https://app.example/#here', 'has a fragment'],
  ['https://app.example/#', 'has a fragment'],
  ['http://localhost@evil.example/', 'contains a user name'],
  ['https://user:word@app.example/', 'contains a user name'],
  ['/callback', 'is not an absolute URL'],
  ['https://', 'is not an absolute URL'],
  ['https://app.example/a b', 'is not an absolute URL'],
  ['https://app.example/\r\nset-cookie: x', 'is not an absolute URL'],
  ['https://bücher.example/', 'is not an absolute URL'],
  ['', 'is not an absolute URL'],
  [`https://app.example/${'x'.repeat(2000)}`, 'is longer than 2000 characters'],
])('the redirect URI %j is refused because it %s', (uri, problem) => {
  expect(redirectUriProblem(uri)).toContain(problem);
});
