/**
 * Splits highlighted code into lines. An element over several lines is closed at each line's end and opened again in the
 * next. Returns `undefined` if the lines would have more than `lengthMax` characters together: within deep elements
 * each empty line takes kilobytes.
 */
export function markupLines(markup: string, lengthMax: number): string[] | undefined {
  const open: string[] = [];
  const lines: string[] = [];
  let length = 0;
  for (const line of markup.split('\n')) {
    const before = open.join('');
    for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
      if (tag === '</span>') open.pop();
      else open.push(tag);
    }
    const whole = `${before}${line}${'</span>'.repeat(open.length)}`;
    length += whole.length;
    if (length > lengthMax) return undefined;
    lines.push(whole);
  }
  return lines;
}
