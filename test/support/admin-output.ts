/** Returns the value after a label at the start of a line of a command's output. */
export function valueAfter(label: string, output: string): string {
  return new RegExp(`^${label} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';
}

/** Returns the key and secret in the output of `davgate service app create`. */
export function appIn(output: string): { key: string; secret: string } {
  return { key: valueAfter('app key', output), secret: valueAfter('app secret', output) };
}
