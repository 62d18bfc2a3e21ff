import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { freePort } from '../support/free-port.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

// LibreOffice Writer edits documents in place, by its own WebDAV client and with its locks. Python tells it what to do (UNO).

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;

beforeAll(async () => {
  data = await temporaryDirectory();
  // Without a login, which LibreOffice asks for in a dialog.
  program = await startProgram({ dataDirectory: data.path, login: false });
});
afterAll(async () => {
  await program?.stop();
  await data.remove();
});

/**
 * Runs a program in Debian's Python while LibreOffice runs. It has `open_document`, `new_document`, and functions that tell what
 * others see: `is_locked` and `put`, which returns the status. Returns what it passes to `tell`.
 */
async function withLibreOffice(name: string, steps: string): Promise<unknown> {
  const port = await freePort();
  const profile = pathToFileURL(join(data.path, `profile ${name}`)).href;
  const input = `
import json, os, signal, subprocess, time, urllib.error, urllib.request, uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException

address = ${JSON.stringify(new URL(name, program.url).href)}
office = subprocess.Popen(['soffice', '--headless', '--norestore', '-env:UserInstallation=${profile}',
  '--accept=socket,host=127.0.0.1,port=${port};urp;'],
  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
told = []

def property(name, value):
    result = PropertyValue()
    result.Name, result.Value = name, value
    return result

def connect():
    context = uno.getComponentContext()
    resolver = context.ServiceManager.createInstanceWithContext('com.sun.star.bridge.UnoUrlResolver', context)
    while True:
        try:
            return resolver.resolve('uno:socket,host=127.0.0.1,port=${port};urp;StarOffice.ComponentContext')
        except NoConnectException:
            if office.poll() is not None: raise
            time.sleep(0.2)

def load(url):
    return desktop.loadComponentFromURL(url, '_blank', 0, (property('Hidden', True),))

def open_document(): return load(address.replace('http:', 'vnd.sun.star.webdav:'))

def new_document(): return load('private:factory/swriter')

def send(method, body, headers={}):
    request = urllib.request.Request(address, method=method, data=body.encode(), headers=headers)
    try:
        with urllib.request.urlopen(request) as answer: return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error: return error.code, ''

def is_locked(): return '<D:locktoken>' in send('PROPFIND', '', {'Depth': '0'})[1]

def put(): return send('PUT', 'of another client')[0]

def tell(*values): told.extend(values)

try:
    remote = connect()
    desktop = remote.ServiceManager.createInstanceWithContext('com.sun.star.frame.Desktop', remote)
${steps.replaceAll(/^(?=.)/gm, '    ')}
finally:
    os.killpg(office.pid, signal.SIGKILL)
    office.wait()
print(json.dumps(told))
`;
  const { stdout } = await succeed('/usr/bin/python3', ['-'], { input });
  return JSON.parse(stdout);
}

test(
  'LibreOffice saves a new document, and edits it again under a lock that keeps others out until it is closed',
  shows('libreoffice', 'read', 'write', 'overwrite', 'lock'),
  async () => {
    const told = await withLibreOffice(
      'new.odt',
      `
document = new_document()
document.Text.String = 'first text'
document.storeAsURL(address.replace('http:', 'vnd.sun.star.webdav:'), ())
tell(is_locked(), put())
document.close(True)
tell(is_locked())
document = open_document()
tell(document.Text.String, document.isReadonly(), is_locked(), put())
document.Text.String = 'second text'
document.store()
document.close(True)
tell(is_locked())
document = open_document()
tell(document.Text.String)
document.close(True)`,
    );
    expect(told).toEqual([true, 423, false, 'first text', false, true, 423, false, 'second text']);
  },
);

test('a document that another client has locked opens for reading, and is not changed', async () => {
  const told = await withLibreOffice(
    'locked.odt',
    `
document = new_document()
document.Text.String = 'text'
document.storeAsURL(address.replace('http:', 'vnd.sun.star.webdav:'), ())
document.close(True)
lock = '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>'
tell(send('LOCK', lock, {'Content-Type': 'application/xml'})[0])
document = open_document()
tell(document.Text.String, document.isReadonly())
try:
    document.store()
    tell('stored')
except Exception as error:
    tell(type(error).__name__.split('.')[-1])
document.close(True)`,
  );
  expect(told).toEqual([200, 'text', true, 'ErrorCodeIOException']);
});
