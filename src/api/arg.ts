/**
 * JSON that may stand in a header: every UTF-16 unit from DEL up as `\uXXXX` (`Dropbox-API-Arg`).
 */
export function headerJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escapeUnit);
}

/** The value of a `Dropbox-API-Result` header, escaped or as raw UTF-8. Throws `SyntaxError`. */
export function parseHeaderJson(header: string): unknown {
  // Header bytes reach us one character each: raw UTF-8 has to be put together again.
  return JSON.parse(Buffer.from(header, 'latin1').toString('utf8'));
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
