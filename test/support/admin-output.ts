/** What stands behind a word at the beginning of a line of what a command said. */
export function told(word: string, said: string): string {
  return new RegExp(`^${word} +(\\S+)$`, 'm').exec(said)?.[1] ?? '';
}

/** The app that `davgate service app create` has told of. */
export function appIn(said: string): { key: string; secret: string } {
  return { key: told('app key', said), secret: told('app secret', said) };
}
