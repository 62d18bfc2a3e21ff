import { crc32, deflateSync } from 'node:zlib';
import { Dropbox, type DropboxResponseError, type files } from 'dropbox';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sdkBytesOf, sdkFetch } from '../support/sdk.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, put, refusal, refusalIn, rpc, send, sharedLink } from '../support/service-client.ts';

let service: TestService;
let sdk: Dropbox;
let app: Dropbox;

const drawn = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp({
    create: { width, height, channels, background: { r: 200, g: 40, b: 40, alpha: 0.5 } },
    limitInputPixels: false,
  });

beforeAll(async () => {
  service = await startTestService();
  const fetch = sdkFetch(service);
  sdk = new Dropbox({ accessToken: service.token, fetch });
  app = new Dropbox({ clientId: service.appKey, clientSecret: service.appSecret, fetch });
  await put(service, '/wide.jpg', await drawn(1200, 600).jpeg().toBuffer());
  await put(service, '/tall.png', await drawn(300, 900, 4).png().toBuffer());
  await put(service, '/small.webp', await drawn(20, 10).webp().toBuffer());
});
afterAll(() => service.close());

async function made(argument: Omit<files.ThumbnailV2Arg, 'resource'> & { path: string }): Promise<string> {
  const { path, ...rest } = argument;
  const { result } = await sdk.filesGetThumbnailV2({ resource: { '.tag': 'path', path }, ...rest });
  const { format, width, height } = await sharp(sdkBytesOf(result)).metadata();
  return `${format} ${width}x${height}`;
}

/** Calls get_thumbnail_v2 without the SDK. */
const asked = (argument: object, token?: string) =>
  send(`${service.url}/2/files/get_thumbnail_v2`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token ?? service.token}`, 'dropbox-api-arg': headerJson(argument) },
  });

const refused = async (path: string) => refusalIn(await asked({ resource: { '.tag': 'path', path } }));

describe('files/get_thumbnail_v2', () => {
  test('get_thumbnail_v2 answers a JPEG within 64 by 64 and the file’s metadata', async () => {
    const { result } = await sdk.filesGetThumbnailV2({ resource: { '.tag': 'path', path: '/wide.jpg' } });
    const { result: stat } = await sdk.filesGetMetadata({ path: '/wide.jpg' });
    const { '.tag': _, ...file } = stat;
    expect(result.file_metadata).toEqual(file);
    expect(result.link_metadata).toBeUndefined();
    expect(await made({ path: '/wide.jpg' })).toBe('jpeg 64x32');
    const answered = await asked({ resource: { '.tag': 'path', path: '/wide.jpg' } });
    expect(answered.headers.get('content-type')).toBe('application/octet-stream');
  });

  test.each([
    ['w32h32', '32x16'],
    ['w64h64', '64x32'],
    ['w128h128', '128x64'],
    ['w256h256', '256x128'],
    ['w480h320', '480x240'],
    ['w640h480', '640x320'],
    ['w960h640', '960x480'],
    ['w1024h768', '1024x512'],
    ['w2048h1536', '1200x600'],
  ] as const)(
    'get_thumbnail_v2 with size %s of an image of 1200 by 600 answers %s',
    async (size, expected) => {
      expect(await made({ path: '/wide.jpg', size: { '.tag': size } })).toBe(`jpeg ${expected}`);
    },
  );

  test.each([
    ['strict', '107x320'],
    ['bestfit', '160x480'],
    ['fitone_bestfit', '300x900'],
    ['original', '300x900'],
  ] as const)(
    'get_thumbnail_v2 with mode %s and size w480h320 of an image of 300 by 900 answers %s',
    async (mode, expected) => {
      const argument = { path: '/tall.png', size: { '.tag': 'w480h320' }, mode: { '.tag': mode } } as const;
      // The SDK's types do not know of "original" yet.
      expect(await made(argument as Parameters<typeof made>[0])).toBe(`jpeg ${expected}`);
    },
  );

  test('get_thumbnail_v2 with mode fitone_bestfit answers an image that covers the box', async () => {
    const argument = {
      path: '/wide.jpg',
      size: { '.tag': 'w128h128' },
      mode: { '.tag': 'fitone_bestfit' },
    } as const;
    expect(await made(argument)).toBe('jpeg 256x128');
  });

  test.each(['jpeg', 'png', 'webp'] as const)(
    'get_thumbnail_v2 answers the format %s that the call asks for',
    async (format) => {
      const argument = { path: '/tall.png', format: { '.tag': format } };
      // The SDK's types do not know of "webp" yet.
      expect(await made(argument as Parameters<typeof made>[0])).toBe(`${format} 21x64`);
    },
  );

  test('get_thumbnail_v2 never enlarges an image', async () => {
    expect(await made({ path: '/small.webp', size: { '.tag': 'w256h256' } })).toBe('jpeg 20x10');
  });

  test('get_thumbnail_v2 puts white behind a transparent image as JPEG, and keeps the transparency as PNG', async () => {
    const bytesOf = async (format: 'jpeg' | 'png') =>
      sdkBytesOf(
        (
          await sdk.filesGetThumbnailV2({
            resource: { '.tag': 'path', path: '/tall.png' },
            format: { '.tag': format },
          })
        ).result,
      );
    const [red = 0, green = 0] = await sharp(await bytesOf('jpeg'))
      .raw()
      .toBuffer();
    expect([red > 215, green > 135]).toEqual([true, true]);
    expect((await sharp(await bytesOf('png')).metadata()).hasAlpha).toBe(true);
  });

  test('get_thumbnail_v2 turns an image upright and strips its EXIF data', async () => {
    const turned = drawn(400, 200)
      .jpeg()
      .withExif({ IFD0: { Copyright: 'me' } })
      .withMetadata({ orientation: 6 });
    await put(service, '/turned.jpg', await turned.toBuffer());
    const { result } = await sdk.filesGetThumbnailV2({ resource: { '.tag': 'path', path: '/turned.jpg' } });
    const { width, height, orientation, exif } = await sharp(sdkBytesOf(result)).metadata();
    expect([width, height, orientation, exif]).toEqual([32, 64, undefined, undefined]);
  });

  test.each([
    ['jpeg', 'a.jpeg'],
    ['png', 'a.PNG'],
    ['webp', 'a.webp'],
    ['tiff', 'a.tif'],
    ['tiff', 'a.tiff'],
    ['gif', 'a.gif'],
    // The name decides whether there is a thumbnail, the bytes decide the decoder.
    ['png', 'misnamed.jpg'],
  ] as const)('get_thumbnail_v2 answers a thumbnail of a %s named %s', async (format, name) => {
    await put(service, `/${name}`, await drawn(200, 100).toFormat(format).toBuffer());
    expect(await made({ path: `/${name}` })).toBe('jpeg 64x32');
  });

  test('get_thumbnail_v2 answers thumbnails of a portable pixmap and of a bitmap', async () => {
    await put(
      service,
      '/a.ppm',
      Buffer.concat([Buffer.from('P6 128 64 255\n'), Buffer.alloc(128 * 64 * 3, 9)]),
    );
    expect(await made({ path: '/a.ppm' })).toBe('jpeg 64x32');
    await put(service, '/a.bmp', bitmap(130, 65));
    expect(await made({ path: '/a.bmp' })).toBe('jpeg 64x32');
  });
});

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/** A chunk of a PNG (RFC 2083 §3.2). */
function pngChunk(type: string, data: Uint8Array): Buffer {
  const typed = Buffer.concat([Buffer.from(type), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, checksum]);
}

/** The first chunk of a PNG; `format` is bits a sample, colour type, two zeros and interlacing. */
function pngHeaderChunk(width: number, height: number, format: readonly number[]): Buffer {
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  return pngChunk('IHDR', Buffer.concat([size, Buffer.from(format)]));
}

/** A whole PNG of one bit a pixel, all black. */
function blackPng(width: number, height: number): Buffer {
  const rows = Buffer.alloc((1 + Math.ceil(width / 8)) * height);
  return Buffer.concat([
    PNG_SIGNATURE,
    pngHeaderChunk(width, height, [1, 0, 0, 0, 0]),
    pngChunk('IDAT', deflateSync(rows)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** The beginning of a PNG of 16-bit RGBA pixels, long enough to read its size. */
function pngHeader(width: number, height: number, interlace: 0 | 1): Buffer {
  const data = Buffer.concat([
    Buffer.from([0, 0, 0, 0]),
    Buffer.from('IDAT'),
    Buffer.from([0x35, 0xaf, 6, 0x1e]),
  ]);
  return Buffer.concat([PNG_SIGNATURE, pngHeaderChunk(width, height, [16, 6, 0, 0, interlace]), data]);
}

describe('memory limit of decoding', () => {
  test('get_thumbnail_v2 answers unsupported_image for an image that takes more than 256 MiB to decode as a whole', async () => {
    await put(service, '/interlaced.png', pngHeader(9990, 9990, 1));
    expect(await refused('/interlaced.png')).toMatchObject({ error: { '.tag': 'unsupported_image' } });
    // These are decoded, by rows or because they are small enough, and fail on the missing data after the
    // header.
    await put(service, '/rows.png', pngHeader(9990, 9990, 0));
    await put(service, '/small.png', pngHeader(5000, 5000, 1));
    for (const path of ['/rows.png', '/small.png'])
      expect(await refused(path)).toMatchObject({ error: { '.tag': 'conversion_error' } });
  });
});

describe('files/get_thumbnail_v2 of a shared link', () => {
  test('get_thumbnail_v2 of a link answers an app without the path of the file, and its owner with it', async () => {
    const url = await sharedLink(service, '/wide.jpg');
    const resource = { '.tag': 'link', url } as const;
    const { result } = await app.filesGetThumbnailV2({ resource });
    const { result: stat } = await sdk.filesGetMetadata({ path: '/wide.jpg' });
    const { id, rev } = stat as files.FileMetadataReference;
    expect(result.link_metadata).toEqual({ url, id, rev });
    expect(result.file_metadata).toBeUndefined();
    expect((await sharp(sdkBytesOf(result)).metadata()).width).toBe(64);
    const { result: owned } = await sdk.filesGetThumbnailV2({ resource });
    expect(owned.link_metadata).toEqual({ url, id, rev, path: '/wide.jpg' });
  });

  test('get_thumbnail_v2 of a file in a linked folder needs the link’s password and a path inside the folder', async () => {
    await put(service, '/album/in/a.png', await drawn(100, 100).png().toBuffer());
    const url = await sharedLink(service, '/album', {
      requested_visibility: 'password',
      link_password: 'pass',
    });
    const ask = (password: string, path = '/in/a.png') =>
      app
        .filesGetThumbnailV2({ resource: { '.tag': 'link', url, path, password } })
        .then(({ result }) => sharp(sdkBytesOf(result)).metadata())
        .then(({ width }) => width)
        .catch((error: DropboxResponseError<{ error: { '.tag': string } }>) => error.error.error['.tag']);
    expect(await ask('pass')).toBe(64);
    expect(await ask('guess')).toBe('access_denied');
    expect(await ask('pass', '/in/none.png')).toBe('not_found');
    expect(await ask('pass', '/in')).toBe('not_found');
    expect(await ask('pass', '/../wide.jpg')).toBe('not_found');
  });

  test('get_thumbnail_v2 of a path answers an app without a user with 400', async () => {
    const basic = Buffer.from(`${service.appKey}:${service.appSecret}`).toString('base64');
    const answered = await send(`${service.url}/2/files/get_thumbnail_v2`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${basic}`,
        'dropbox-api-arg': headerJson({ resource: { '.tag': 'path', path: '/wide.jpg' } }),
      },
    });
    expect([answered.status, answered.text]).toEqual([400, expect.stringContaining('without a user')]);
  });
});

describe('refusals of files/get_thumbnail_v2', () => {
  const flat = (tag: string) => refusal(409, tag, { '.tag': tag });

  test.each(['notes.txt', 'drawing.svg', 'png', 'photo.heic'])(
    'get_thumbnail_v2 of %s answers unsupported_extension',
    async (name) => {
      await put(service, `/${name}`, await drawn(10, 10).png().toBuffer());
      expect(await refused(`/${name}`)).toEqual(flat('unsupported_extension'));
    },
  );

  test.each([
    ['text.png', Buffer.from('no image')],
    ['empty.png', Buffer.alloc(0)],
    // libvips could read these, and files that an SVG refers to.
    ['drawing.png', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
    ['paper.jpg', Buffer.from('%PDF-1.4')],
    ['claims.ppm', Buffer.from('P6 30000 30000 255\n')],
    ['claims.bmp', bitmap(30_000, 30_000).subarray(0, 200)],
    ['compressed.bmp', compressedBitmap()],
    ['cut.bmp', bitmap(9, 9).subarray(0, 20)],
  ])('get_thumbnail_v2 of %s, which is no readable image, answers unsupported_image', async (name, bytes) => {
    await put(service, `/${name}`, bytes);
    expect(await refused(`/${name}`)).toEqual(flat('unsupported_image'));
  });

  test('get_thumbnail_v2 of a small file that claims 400 million pixels answers unsupported_image', async () => {
    const bomb = blackPng(20_000, 20_000);
    expect(bomb.length).toBeLessThan(10_000_000);
    await put(service, '/bomb.png', bomb);
    expect(await refused('/bomb.png')).toEqual(flat('unsupported_image'));
  });

  test('get_thumbnail_v2 of a file of more than 20 MB answers unsupported_image', async () => {
    const image = await drawn(10, 10).png().toBuffer();
    await put(service, '/large.png', Buffer.concat([image, Buffer.alloc(20 * 1024 * 1024)]));
    expect(await refused('/large.png')).toEqual(flat('unsupported_image'));
  });

  test('get_thumbnail_v2 of a truncated image answers conversion_error', async () => {
    const noise = await sharp({
      create: {
        width: 300,
        height: 300,
        channels: 3,
        background: '#000',
        noise: { type: 'gaussian', sigma: 60 },
      },
    })
      .png()
      .toBuffer();
    await put(service, '/torn.png', noise.subarray(0, noise.length / 2));
    expect(await refused('/torn.png')).toEqual(flat('conversion_error'));
  });

  test('get_thumbnail_v2 answers path/not_found for no file and path/not_file for a folder', async () => {
    const path = (tag: string) => refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } });
    expect(await refused('/none.png')).toEqual(path('not_found'));
    await rpc(service, 'files/create_folder_v2', { path: '/folder.png' });
    expect(await refused('/folder.png')).toEqual(path('not_file'));
  });

  test.each([
    [{ resource: { '.tag': 'other' } }, "unknown tag 'other'"],
    [{ resource: { '.tag': 'link' } }, "missing required field 'url'"],
    [{ resource: { '.tag': 'path', path: '/a' }, size: 'w1h1' }, "unknown tag 'w1h1'"],
    [{}, "missing required field 'resource'"],
  ])('get_thumbnail_v2 answers the malformed argument %j with 400', async (argument, error) => {
    const answered = await asked(argument);
    expect([answered.status, answered.text]).toEqual([400, expect.stringContaining(error)]);
  });
});

describe('files/get_thumbnail_batch', () => {
  test('get_thumbnail_batch answers a success or a failure for each entry', async () => {
    await put(service, '/text.md', 'text');
    const { result } = await sdk.filesGetThumbnailBatch({
      entries: [
        { path: '/wide.jpg', size: { '.tag': 'w32h32' }, format: { '.tag': 'png' } },
        { path: '/text.md' },
        { path: '/none.png' },
      ],
    });
    const [first, ...rest] = result.entries;
    if (first?.['.tag'] !== 'success') throw new Error(JSON.stringify(first));
    const { format, width, height } = await sharp(Buffer.from(first.thumbnail, 'base64')).metadata();
    expect([format, width, height]).toEqual(['png', 32, 16]);
    const { result: stat } = await sdk.filesGetMetadata({ path: '/wide.jpg' });
    const { '.tag': _, ...file } = stat;
    expect(first.metadata).toEqual(file);
    expect(rest).toEqual([
      { '.tag': 'failure', failure: { '.tag': 'unsupported_extension' } },
      { '.tag': 'failure', failure: { '.tag': 'path', path: { '.tag': 'not_found' } } },
    ]);
  });

  test('get_thumbnail_batch of 26 entries answers too_many_files', async () => {
    const entries = Array.from({ length: 26 }, () => ({ path: '/wide.jpg' }));
    const answered = await rpc(service, 'files/get_thumbnail_batch', { entries });
    expect(refusalIn(answered)).toEqual(refusal(409, 'too_many_files', { '.tag': 'too_many_files' }));
  });
});

/** A bitmap of 24 bits a pixel. */
function bitmap(width: number, height: number): Buffer {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const bytes = Buffer.alloc(54 + Math.min(rowBytes * height, 1_000_000), 128);
  bytes.write('BM', 0);
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  bytes.writeUInt32LE(0, 30);
  return bytes;
}

function compressedBitmap(): Buffer {
  const bytes = bitmap(9, 9);
  bytes.writeUInt32LE(1, 30);
  return bytes;
}
