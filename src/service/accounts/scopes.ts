/** What a token may be allowed to do; each function asks for one. */
export const SCOPES = [
  'account_info.read',
  'account_info.write',
  'files.metadata.read',
  'files.metadata.write',
  'files.content.read',
  'files.content.write',
  'files.permanent_delete',
  'sharing.read',
  'sharing.write',
] as const;

export type Scope = (typeof SCOPES)[number];

function isScope(word: string): word is Scope {
  return (SCOPES as readonly string[]).includes(word);
}

/** The scopes in a space separated list, as OAuth and our own table write them. */
export function parseScopes(words: string): readonly Scope[] {
  return words.split(' ').filter(isScope);
}
