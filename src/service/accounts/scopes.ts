/**
 * The scopes of a token, each with the words in which the consent page explains it. Each function needs one
 * (`routes/table.ts`).
 */
const WORDS = {
  'account_info.read': 'See your name, your email address and how much space you use',
  'account_info.write': 'Change your account’s details',
  'files.metadata.read': 'See the names, sizes and dates of your files and folders',
  'files.metadata.write': 'Change properties and tags of your files and folders',
  'files.content.read': 'Read the content of your files',
  'files.content.write': 'Create, change, move and delete your files and folders',
  'files.permanent_delete': 'Permanently delete your files and folders',
  'sharing.read': 'See your shared links',
  'sharing.write': 'Create, change and revoke your shared links',
} as const;

export type Scope = keyof typeof WORDS;

/** All scopes, in the order of the consent page. */
export const SCOPES = Object.keys(WORDS) as readonly Scope[];

/** Returns the scope in words for the account's owner. */
export function scopeInWords(scope: Scope): string {
  return WORDS[scope];
}

export function isScope(word: string): word is Scope {
  return Object.hasOwn(WORDS, word);
}

/** Parses a list of scopes separated by spaces, as OAuth and our tables write it. */
export function parseScopes(words: string): readonly Scope[] {
  return words.split(' ').filter(isScope);
}
