/** The scopes that davgate uses, and what each one is for. */
const USES = {
  'account_info.read': 'show free space, and notice a change of the account',
  'files.metadata.read': 'list folders',
  'files.content.read': 'read files',
  'files.content.write': 'write files',
  'sharing.read': 'show shared links',
  'sharing.write': 'make shared links',
  'files.permanent_delete': 'delete permanently (without it DELETE moves to the trash)',
} as const;

/** Returns lines about the granted scopes, and about what does not work without the missing ones. */
export function scopesText(granted: readonly string[]): string {
  const missing = Object.entries(USES).filter(([scope]) => !granted.includes(scope));
  const lines = [`Scopes granted: ${granted.join(', ')}`];
  if (missing.length > 0) {
    lines.push('Scopes missing (choose them for the app in the developer console, then log in again):');
    for (const [scope, use] of missing) lines.push(`  ${scope.padEnd(22)}  to ${use}`);
  }
  return lines.join('\n');
}
