import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SearchOrder } from '../../../../src/dav/search/search-order.ts';
import { XmlReader } from '../../../../src/dav/xml/xml-reader.ts';
import { Announcer } from '../../../../src/drive/changes.ts';
import { createDriveView } from '../../../../src/drive/view/drive-view.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { MemoryFiles } from '../../../support/memory-files.ts';
import { memoryState } from '../../../support/memory-state.ts';
import { parseMultistatus } from '../../../support/multistatus.ts';
import { NO_HISTORY } from '../../../support/no-history.ts';
import { path } from '../../../support/paths.ts';

// SEARCH with DAV:basicsearch (RFC 5323).

let dav: DavServer;

const SELECT = '<D:select><D:prop><D:displayname/></D:prop></D:select>';
const from = (href: string, depth = 'infinity') =>
  `<D:from><D:scope><D:href>${href}</D:href><D:depth>${depth}</D:depth></D:scope></D:from>`;
const compare = (operator: string, property: string, literal: string, attributes = '') =>
  `<D:${operator} ${attributes}><D:prop><D:${property}/></D:prop><D:literal>${literal}</D:literal></D:${operator}>`;
const where = (condition: string) => `<D:where>${condition}</D:where>`;

function send(parts: string, { target = '/', grammar = 'basicsearch' } = {}) {
  const body = `<D:searchrequest xmlns:D="DAV:"><D:${grammar}>${parts}</D:${grammar}></D:searchrequest>`;
  return dav.send('SEARCH', target, { body });
}

/** Returns the hrefs that a search from the root finds. */
async function found(condition: string, more = ''): Promise<readonly string[]> {
  const { status, text } = await send(SELECT + from('/') + (condition && where(condition)) + more);
  expect(status, text).toBe(207);
  return (await parseMultistatus(text)).map(({ href }) => href);
}

async function refusal(parts: string, options = {}): Promise<readonly [number, string]> {
  const { status, text } = await send(parts, options);
  return [status, text];
}

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/docs/Report 1.txt', 'a');
  await dav.file('/docs/sub/report 2.txt', 'bb');
  await dav.file('/docs/sub/100% sure.md', 'ccc');
  await dav.file('/photo.jpg', 'dddd');
});
afterEach(() => dav.close());

const REPORT_1 = '/docs/Report%201.txt';
const REPORT_2 = '/docs/sub/report%202.txt';
const SURE = '/docs/sub/100%25%20sure.md';

describe('conditions', () => {
  test('without a condition a search finds the scope itself and everything in it, to the depth that it names', async () => {
    const hrefs = async (depth: string) => {
      const { text } = await send(SELECT + from('/docs', depth));
      return (await parseMultistatus(text)).map(({ href }) => href).sort();
    };
    expect(await hrefs('0')).toEqual(['/docs/']);
    expect(await hrefs('1')).toEqual(['/docs/', REPORT_1, '/docs/sub/'].sort());
    expect(await hrefs('infinity')).toEqual(['/docs/', REPORT_1, '/docs/sub/', SURE, REPORT_2].sort());
  });

  test.each([
    ['eq of a name in any letter case', compare('eq', 'displayname', 'REPORT 1.TXT'), [REPORT_1]],
    ['eq of a name in this letter case', compare('eq', 'displayname', 'REPORT 1.TXT', 'caseless="no"'), []],
    ['like with % for any text', compare('like', 'displayname', 'report%'), [REPORT_1, REPORT_2]],
    ['like with _ for one character', compare('like', 'displayname', '%rt__.txt'), [REPORT_1, REPORT_2]],
    ['like with an escaped %', compare('like', 'displayname', '%\\%%'), [SURE]],
    ['like of a media type', compare('like', 'getcontenttype', 'image/%'), ['/photo.jpg']],
    ['gt of a length', compare('gt', 'getcontentlength', '3'), ['/photo.jpg']],
    ['gte of a length', compare('gte', 'getcontentlength', '3'), [SURE, '/photo.jpg']],
    ['lt of a length', compare('lt', 'getcontentlength', '2'), [REPORT_1]],
    ['lte of a length', compare('lte', 'getcontentlength', '2'), [REPORT_1, REPORT_2]],
    [
      'and',
      `<D:and>${compare('gt', 'getcontentlength', '1')}${compare('lt', 'getcontentlength', '3')}</D:and>`,
      [REPORT_2],
    ],
    [
      'or',
      `<D:or>${compare('eq', 'getcontentlength', '1')}${compare('eq', 'displayname', 'photo.jpg')}</D:or>`,
      [REPORT_1, '/photo.jpg'],
    ],
    [
      'not, which is unknown for a resource without the property',
      `<D:not>${compare('gt', 'getcontentlength', '1')}</D:not>`,
      [REPORT_1],
    ],
    ['is-collection', '<D:is-collection/>', ['/', '/docs/', '/docs/sub/']],
    [
      'is-defined',
      '<D:and><D:is-defined><D:prop><D:getcontentlength/></D:prop></D:is-defined><D:not><D:is-collection/></D:not></D:and>',
      [REPORT_1, REPORT_2, SURE, '/photo.jpg'],
    ],
    [
      'a date before all',
      compare('gt', 'getlastmodified', '1990-01-01T00:00:00Z'),
      ['/', '/docs/', REPORT_1, '/docs/sub/', REPORT_2, SURE, '/photo.jpg'],
    ],
    ['an HTTP date before all', compare('lt', 'getlastmodified', 'Mon, 01 Jan 1990 00:00:00 GMT'), []],
  ])('%s finds exactly what it says', async (_, condition, expected) => {
    const hrefs = await found(condition);
    const withTimes = expected.length === 7 ? hrefs.filter((href) => !href.endsWith('/')) : hrefs;
    const wanted = expected.length === 7 ? expected.filter((href) => !href.endsWith('/')) : expected;
    expect([...withTimes].sort()).toEqual([...wanted].sort());
  });

  test('is-defined finds dead properties', async () => {
    const set =
      '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><c xmlns="urn:x">v</c></D:prop></D:set></D:propertyupdate>';
    expect((await dav.send('PROPPATCH', '/photo.jpg', { body: set })).status).toBe(207);
    expect(await found('<D:is-defined><D:prop><c xmlns="urn:x"/></D:prop></D:is-defined>')).toEqual([
      '/photo.jpg',
    ]);
  });
});

test('comparisons with creationdate, is-defined of it and orderby look at the date that a client has set', async () => {
  const set =
    '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><D:creationdate>2000-01-01T00:00:00Z</D:creationdate></D:prop></D:set></D:propertyupdate>';
  expect((await dav.send('PROPPATCH', '/photo.jpg', { body: set })).status).toBe(207);
  const order = '<D:orderby><D:order><D:prop><D:creationdate/></D:prop><D:ascending/></D:order></D:orderby>';
  const files = '<D:not><D:is-collection/></D:not>';
  expect(await found(compare('eq', 'creationdate', '2000-01-01'))).toEqual(['/photo.jpg']);
  expect((await found(files, order))[0]).toBe('/photo.jpg');
  expect(
    await found(`<D:and>${files}<D:is-defined><D:prop><D:creationdate/></D:prop></D:is-defined></D:and>`),
  ).toHaveLength(4);
});

describe('answers', () => {
  test('orderby sorts by one property after the other, and a limit keeps the first rows', async () => {
    const order = (name: string, direction = 'ascending') =>
      `<D:order><D:prop><D:${name}/></D:prop><D:${direction}/></D:order>`;
    const files = '<D:not><D:is-collection/></D:not>';
    expect(await found(files, `<D:orderby>${order('getcontentlength', 'descending')}</D:orderby>`)).toEqual([
      '/photo.jpg',
      SURE,
      REPORT_2,
      REPORT_1,
    ]);
    const byType = `<D:orderby>${order('getcontenttype')}${order('displayname', 'descending')}</D:orderby>`;
    expect(await found(files, `${byType}<D:limit><D:nresults>3</D:nresults></D:limit>`)).toEqual([
      '/photo.jpg',
      SURE,
      REPORT_2,
    ]);
    expect(await found(files, '<D:limit><D:nresults>2</D:nresults></D:limit>')).toHaveLength(2);
    expect(await found(files, '<D:limit><D:nresults>0</D:nresults></D:limit>')).toEqual([]);
  });

  test('select shows the properties of PROPFIND: those that are named, or all', async () => {
    const search = async (select: string) => {
      const { text } = await send(`<D:select>${select}</D:select>${from('/photo.jpg', '0')}`);
      const [row] = await parseMultistatus(text);
      return row?.properties;
    };
    const named = await search('<D:prop><D:getcontentlength/><c xmlns="urn:x"/></D:prop>');
    expect(named?.get('{DAV:}getcontentlength')?.text).toBe('4');
    expect(named?.get('{urn:x}c')?.status).toContain('404');
    expect((await search('<D:allprop/>'))?.get('{DAV:}getetag')?.status).toContain('200');
  });

  test('a scope is an address, a path, or relative to the address of the request', async () => {
    for (const href of ['sub', './sub/', '/docs/sub', 'http://dav.example/docs/sub/', '/DOCS/SUB']) {
      const { status, text } = await send(SELECT + from(href, '0'), { target: '/docs/' });
      expect([status, text]).toEqual([207, expect.stringContaining('<D:displayname>sub</D:displayname>')]);
    }
  });

  test('OPTIONS and supported-query-grammar-set tell that DAV:basicsearch is supported', async () => {
    expect((await dav.send('OPTIONS', '/docs')).headers['dasl']).toBe('<DAV:basicsearch>');
    const body = '<D:propfind xmlns:D="DAV:"><D:prop><D:supported-query-grammar-set/></D:prop></D:propfind>';
    const { text } = await dav.send('PROPFIND', '/docs', { headers: { Depth: '0' }, body });
    expect(text).toContain(
      '<D:supported-query-grammar><D:grammar><D:basicsearch/></D:grammar></D:supported-query-grammar>',
    );
    expect((await dav.send('PROPFIND', '/docs', { headers: { Depth: '0' } })).text).not.toContain('grammar');
  });
});

describe('refusals', () => {
  const IN_ROOT = SELECT + from('/');

  test.each([
    ['contains', '<D:contains>text</D:contains>', 'contains'],
    [
      'language-defined',
      '<D:language-defined><D:prop><D:displayname/></D:prop></D:language-defined>',
      'language-defined',
    ],
    ['an operator of another namespace', '<near xmlns="urn:x"/>', '{urn:x}near'],
    [
      'a typed literal',
      '<D:eq><D:prop><D:displayname/></D:prop><D:typed-literal>a</D:typed-literal></D:eq>',
      'typed-literal',
    ],
    [
      'a comparison of a dead property',
      '<D:eq><D:prop><c xmlns="urn:x"/></D:prop><D:literal>a</D:literal></D:eq>',
      'property c',
    ],
    ['a comparison of locks', compare('eq', 'lockdiscovery', 'a'), 'lockdiscovery'],
    [
      'is-defined of a property that costs a call',
      '<D:is-defined><D:prop><D:quota-used-bytes/></D:prop></D:is-defined>',
      'quota-used-bytes',
    ],
    ['like of a number', compare('like', 'getcontentlength', '1%'), 'getcontentlength'],
  ])(
    '%s answers 422 search-grammar-supported and names what is not supported',
    async (_, condition, name) => {
      const [status, text] = await refusal(IN_ROOT + where(condition));
      expect(status).toBe(422);
      expect(text).toContain('<D:search-grammar-supported/>');
      expect(text).toContain(name);
    },
  );

  test('another grammar, order, part of a scope, a second scope and a question for the schema answer 422', async () => {
    const order = '<D:orderby><D:order><D:score/></D:order></D:orderby>';
    expect((await refusal(IN_ROOT + order))[0]).toBe(400);
    expect(
      (
        await refusal(
          `${IN_ROOT}<D:orderby><D:order><D:prop><D:getlastmodifier/></D:prop></D:order></D:orderby>`,
        )
      )[0],
    ).toBe(422);
    expect(await refusal(IN_ROOT, { grammar: 'sql' })).toEqual([
      422,
      expect.stringContaining('search-grammar-supported'),
    ]);
    const versions = '<D:from><D:scope><D:href>/</D:href><D:include-versions/></D:scope></D:from>';
    expect(await refusal(SELECT + versions)).toEqual([422, expect.stringContaining('include-versions')]);
    const two =
      '<D:from><D:scope><D:href>/</D:href></D:scope><D:scope><D:href>/docs</D:href></D:scope></D:from>';
    expect(await refusal(SELECT + two)).toEqual([
      422,
      expect.stringContaining('search-multiple-scope-supported'),
    ]);
    const schema = await dav.send('SEARCH', '/', { body: '<D:query-schema-discovery xmlns:D="DAV:"/>' });
    expect([schema.status, schema.text]).toEqual([
      422,
      expect.stringContaining('search-grammar-discovery-supported'),
    ]);
  });

  test('a scope that does not exist answers 409 search-scope-valid', async () => {
    expect(await refusal(SELECT + from('/nothing'))).toEqual([
      409,
      expect.stringContaining('<D:search-scope-valid/>'),
    ]);
  });

  test.each([
    ['no body', undefined],
    ['another root element', '<D:propfind xmlns:D="DAV:"/>'],
    ['no grammar', '<D:searchrequest xmlns:D="DAV:"/>'],
  ])('%s answers 400', async (_, body) => {
    expect((await dav.send('SEARCH', '/', { ...(body && { body }) })).status).toBe(400);
  });

  test.each([
    ['no select', from('/')],
    ['no from', SELECT],
    ['an unknown depth', SELECT + from('/', '2')],
    ['a limit that is no number', `${IN_ROOT}<D:limit><D:nresults>x</D:nresults></D:limit>`],
    ['a length that is no number', IN_ROOT + where(compare('eq', 'getcontentlength', 'many'))],
    ['a time that is no date', IN_ROOT + where(compare('gt', 'getlastmodified', 'today'))],
    ['an operator without a literal', IN_ROOT + where('<D:eq><D:prop><D:displayname/></D:prop></D:eq>')],
    [
      'an operator with two properties',
      IN_ROOT + where('<D:eq><D:prop><D:displayname/><D:getetag/></D:prop><D:literal>a</D:literal></D:eq>'),
    ],
    ['an empty and', IN_ROOT + where('<D:and/>')],
    ['two conditions in one', IN_ROOT + where('<D:is-collection/><D:is-collection/>')],
    ['a pattern that ends with its escape', IN_ROOT + where(compare('like', 'displayname', 'a\\'))],
    [
      'more operators than a search may have',
      IN_ROOT + where(`<D:or>${'<D:is-collection/>'.repeat(101)}</D:or>`),
    ],
    [
      'conditions nested too deeply',
      IN_ROOT + where(`${'<D:not>'.repeat(70)}<D:is-collection/>${'</D:not>'.repeat(70)}`),
    ],
    ['a literal longer than any name', IN_ROOT + where(compare('eq', 'displayname', 'x'.repeat(1_001)))],
  ])('%s answers 400', async (_, parts) => {
    expect((await refusal(parts))[0]).toBe(400);
  });

  test('an order by 300 properties sorts by each of them once', async () => {
    const order = (name: string, more = '') => `<D:order><D:prop><D:${name}/></D:prop>${more}</D:order>`;
    const types = order('getcontenttype').repeat(150);
    const orders = types + order('getcontentlength', '<D:descending/>') + types;
    const files = where('<D:not><D:is-collection/></D:not>');
    const { status, text } = await send(`${SELECT}${from('/')}${files}<D:orderby>${orders}</D:orderby>`);
    expect(status).toBe(207);
    const hrefs = (await parseMultistatus(text)).map(({ href }) => href);
    expect(hrefs).toEqual(['/photo.jpg', SURE, REPORT_2, REPORT_1]);
    const root = await new XmlReader().read(Buffer.from(`<D:orderby xmlns:D="DAV:">${orders}</D:orderby>`));
    const entry = await dav.files.stat(path('/photo.jpg'));
    if (!root || !entry) throw new Error('no order, or no file');
    expect(new SearchOrder(root).keysOf({ entry, dead: [] })).toEqual(['image/jpeg', 4]);
  });

  test('other requests have their turn while a search with 100 slow patterns looks at 300 long names', async () => {
    for (let number = 0; number < 300; number++) await dav.file(`/${'a'.repeat(240)}${number}`, '');
    const slow = compare('like', 'displayname', `%${'a'.repeat(120)}b`).repeat(99);
    let turns = 0;
    const watch = setInterval(() => {
      turns += 1;
    });
    try {
      expect(await found(`<D:or>${slow}</D:or>`)).toEqual([]);
    } finally {
      clearInterval(watch);
    }
    expect(turns).toBeGreaterThan(10);
  });

  test('a body larger than 64 KiB answers 413, and a pattern made to take long does not', async () => {
    expect((await refusal(IN_ROOT + where(compare('eq', 'displayname', 'x'.repeat(70_000)))))[0]).toBe(413);
    await dav.file(`/${'a'.repeat(250)}`, '');
    expect(await found(compare('like', 'displayname', `${'%a'.repeat(499)}b`))).toEqual([]);
  });
});

test('a search below the root folder of a user finds nothing above it, and shows no path of it', async () => {
  await dav.close();
  const state = memoryState();
  const files = new MemoryFiles({ clock: new ManualClock(), properties: state.properties });
  await files.createFolder(path('/secret'));
  await files.createFolder(path('/secret/home'));
  const more = { search: async () => ({ entries: [] }), thumbnail: async () => new Uint8Array() };
  const parts = { history: NO_HISTORY, changes: new Announcer(), catchUp: undefined };
  const drive = { files: Object.assign(files, more), state, ...parts };
  const view = createDriveView([{ at: path('/'), drive, root: path('/secret/home'), isReadOnly: true }]);
  dav = await startDav({ wrap: () => view });
  expect(await found('')).toEqual(['/']);
  expect((await refusal(SELECT + from('/secret')))[0]).toBe(409);
  expect((await refusal(SELECT + from('/../secret')))[0]).toBe(400);
});
