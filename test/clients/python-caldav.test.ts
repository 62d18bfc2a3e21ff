import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { succeed } from '../support/command.ts';
import { temporaryDirectory } from '../support/program.ts';

// The client of calendars for Python follows a collection by sync-collection reports (RFC 6578), here one of plain files.

let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let folder: ClientFolder;

beforeAll(async () => {
  [local, folder] = await Promise.all([temporaryDirectory(), clientFolder('caldav')]);
});
afterAll(() => local.remove());

/**
 * Runs a program in Debian's Python, whose package it is, with `session` for requests, `calendar` for the folder at `url`, and
 * `names`, which returns those of objects. Returns what the program passes to `tell`.
 */
async function python(program: string): Promise<unknown> {
  const { url, user, password } = folder;
  const input = `
import caldav, json
from urllib.parse import unquote
url, user, password = json.loads(${JSON.stringify(JSON.stringify([url, user, password]))})
client = caldav.DAVClient(url, username=user, password=password)
calendar = caldav.Calendar(client=client, url=url)
def change(method, name, body='', headers={}):
    answer = client.request(url + name, method, body, headers)
    assert answer.status < 300, (method, name, answer.status)
def names(objects):
    return sorted(unquote(str(one.url)[len(url):]) for one in objects)
told = []
tell = told.append
${program}
print(json.dumps(told))
`;
  const { stdout } = await succeed('/usr/bin/python3', ['-'], { input, directory: local.path });
  return JSON.parse(stdout);
}

test('a client that follows a folder by sync tokens sees new, changed, renamed and deleted files, and each of them once', async () => {
  const told = await python(`
for name in ['stays', 'changes', 'goes', 'is%20renamed']: change('PUT', name, 'first')
seen = calendar.objects_by_sync_token(load_objects=True)
tell(names(seen))
def sync():
    updated, deleted = seen.sync()
    tell([names(updated), names(deleted), names(seen)])
sync()
change('PUT', 'new', 'new')
change('PUT', 'changes', 'second')
change('DELETE', 'goes')
change('MOVE', 'is%20renamed', headers={'Destination': url + 'renamed'})
sync()
sync()
tell({name: seen.objects_by_url()[caldav.lib.url.URL(url + name)].data.strip() for name in ['changes', 'new', 'renamed']})`);
  const last = ['changes', 'new', 'renamed', 'stays'];
  expect(told).toEqual([
    ['changes', 'goes', 'is renamed', 'stays'],
    [[], [], ['changes', 'goes', 'is renamed', 'stays']],
    [['changes', 'new', 'renamed'], ['goes', 'is renamed'], last],
    [[], [], last],
    { changes: 'second', new: 'new', renamed: 'first' },
  ]);
});

test('a client with a token that davgate has not given is refused, and follows the folder again from the start', async () => {
  const told = await python(`
change('PUT', 'file', 'x')
try:
    calendar.objects_by_sync_token('https://example.org/another-server/1')
except caldav.lib.error.AuthorizationError as refusal:
    tell(refusal.reason)
tell('file' in names(calendar.objects_by_sync_token()))`);
  expect(told).toEqual(['Forbidden', true]);
});
