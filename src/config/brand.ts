import { readFileSync } from 'node:fs';
import { isColour } from '../util/colour.ts';
import { accentStyleOf, canBeAccent, type PageLook } from '../util/look.ts';
import { ConfigError, type Setting, type Settings } from './settings.ts';

/** Maximum size of a logo, in bytes: each page contains it. */
const LOGO_BYTES_MAX = 100 * 1024;

const NAME_LENGTH_MAX = 60;

const PNG = Buffer.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/** Returns the look that the settings `brand-*` ask for, and reads the logo; `undefined` without them. Throws `ConfigError`. */
export function brandOf(settings: Settings): PageLook | undefined {
  const name = nameOf(settings.get('brand-name'));
  const logo = logoIn(settings.get('brand-logo'));
  const colour = colourOf(settings.get('brand-colour'));
  if (name === undefined && logo === undefined && colour === undefined) return undefined;
  return { name, logo, accentStyle: colour === undefined ? '' : accentStyleOf(colour) };
}

function nameOf(setting: Setting | undefined): string | undefined {
  if (setting && setting.text.length > NAME_LENGTH_MAX)
    throw new ConfigError(`${setting.origin}: too long; give at most ${NAME_LENGTH_MAX} characters`);
  return setting?.text;
}

/** Returns the logo as a data URL. */
function logoIn(setting: Setting | undefined): string | undefined {
  if (!setting) return undefined;
  const { text: file, origin } = setting;
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    const reason = code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`;
    throw new ConfigError(`${origin}: ${file}: ${reason}; give an SVG or PNG file`);
  }
  if (bytes.length > LOGO_BYTES_MAX)
    throw new ConfigError(
      `${origin}: ${file} has ${bytes.length} bytes; give one of at most ${LOGO_BYTES_MAX}`,
    );
  const type = bytes.subarray(0, PNG.length).equals(PNG)
    ? 'image/png'
    : /<svg[\s>]/.test(bytes.toString('utf8'))
      ? 'image/svg+xml'
      : undefined;
  if (type === undefined) throw new ConfigError(`${origin}: ${file} is neither SVG nor PNG`);
  return `data:${type};base64,${bytes.toString('base64')}`;
}

function colourOf(setting: Setting | undefined): string | undefined {
  if (!setting) return undefined;
  const { text, origin } = setting;
  if (!isColour(text)) throw new ConfigError(`${origin}: ${text} is no colour; write it like #1f5fd6`);
  if (!canBeAccent(text))
    throw new ConfigError(`${origin}: white text on ${text} is hard to read; choose a darker colour`);
  return text;
}
