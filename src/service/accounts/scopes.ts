/**
 * What a token may be allowed to do, and how a person who is asked for it reads that. Each function asks for one
 * (`routes/table.ts`).
 */
const WORDS = {
  'account_info.read': 'See your name, your email address and how much space you use',
  'account_info.write': 'Change your account’s details',
  'files.metadata.read': 'See the names, sizes and dates of your files and folders',
  'files.metadata.write': 'Change properties and tags of your files and folders',
  'files.content.read': 'Read what is in your files',
  'files.content.write': 'Create, change, move and delete your files and folders',
  'files.permanent_delete': 'Delete your files and folders for ever, with no way back',
  'sharing.read': 'See your shared links',
  'sharing.write': 'Create, change and revoke your shared links',
} as const;

export type Scope = keyof typeof WORDS;

/** All of them, in the order in which they are told. */
export const SCOPES = Object.keys(WORDS) as readonly Scope[];

/** The scope in words for the account's owner. */
export function scopeInWords(scope: Scope): string {
  return WORDS[scope];
}

export function isScope(word: string): word is Scope {
  return Object.hasOwn(WORDS, word);
}

/** The scopes in a space separated list, as OAuth and our own table write them. */
export function parseScopes(words: string): readonly Scope[] {
  return words.split(' ').filter(isScope);
}
