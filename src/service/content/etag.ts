/** Whether an `If-None-Match` header names this revision, weak or strong, quoted or bare. */
export function namesRev(header: string | undefined, rev: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => {
    const tag = one.trim();
    return tag === '*' || tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1') === rev;
  });
}
