import { printableName } from './archive-names.ts';

/** Returns the parameters of a Content-Disposition with a file name, in ASCII and in UTF-8 (RFC 6266). */
export function fileNameOf(fileName: string): string {
  const name = printableName(fileName);
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `filename="${ascii}"; filename*=UTF-8''${encoded}`;
}
