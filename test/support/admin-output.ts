/** Returns the value after a label at the start of a line of a command's output; `''` without such a line. */
export function printedValue(label: string, output: string): string {
  return new RegExp(`^${label} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';
}

/** Returns the app that `davgate service app create` printed. */
export function appIn(output: string): { key: string; secret: string } {
  return { key: printedValue('app key', output), secret: printedValue('app secret', output) };
}
