/** Returns the value after a label at the start of a line of a command's output. */
export function told(word: string, said: string): string {
  return new RegExp(`^${word} +(\\S+)$`, 'm').exec(said)?.[1] ?? '';
}

/** Returns the key and secret in the output of `davgate service app create`. */
export function appIn(said: string): { key: string; secret: string } {
  return { key: told('app key', said), secret: told('app secret', said) };
}
