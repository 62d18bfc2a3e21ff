import { keyOf, type Path, PathError, pathOf, ROOT } from '../util/path.ts';
import { collectAll } from './collect.ts';
import { type Fields, fieldsOf, refuse } from './fields.ts';
import { FOLDER_RIGHTS, type FolderGrant } from './grant.ts';

/** The JSON schema of a user's `folders`. */
export const FOLDERS_SCHEMA = {
  minProperties: 1,
  propertyNames: { pattern: '^/' },
  additionalProperties: { enum: FOLDER_RIGHTS },
};

/** Parses the rights of a user in single folders. Throws `ConfigError`. */
export function foldersIn(fields: Fields, path: string): readonly FolderGrant[] | undefined {
  const field = fields.get('folders');
  if (!field) return undefined;
  const rows = [...fieldsOf(field.node, path, '"folders"')];
  const folders = collectAll(
    rows.map(([text, { place, node }]) => () => {
      const value = node.kind === 'scalar' ? node.value : undefined;
      const right = FOLDER_RIGHTS.find((one) => one === value);
      if (!right)
        refuse(
          path,
          node.place,
          `the right in ${text} must be read-write, read-only or hidden, not "${value}"`,
        );
      const folder = folderOf(text);
      if (folder === undefined)
        refuse(path, place, `"${text}" is not a folder's path; write for example /Team/Plans`);
      return { path: folder, right };
    }),
  );
  const keys = folders.map((folder) => keyOf(folder.path));
  const again = rows[keys.findIndex((key, index) => keys.indexOf(key) !== index)]?.[1];
  if (again)
    refuse(
      path,
      again.place,
      'this folder is there twice, and letter case does not distinguish folders; remove one',
    );
  refuseNothingShown(folders, path, field.place);
  return folders.length > 0 ? folders : undefined;
}

function folderOf(text: string): Path | undefined {
  if (!text.startsWith('/')) return undefined;
  try {
    return pathOf(text.replace(/\/+$/, '').split('/').slice(1));
  } catch (error) {
    if (error instanceof PathError) return undefined;
    throw error;
  }
}

function refuseNothingShown(
  folders: readonly { readonly path: Path; readonly right: FolderGrant['right'] }[],
  path: string,
  place: Parameters<typeof refuse>[1],
): void {
  const isHidden = folders.some((folder) => folder.path === ROOT && folder.right === 'hidden');
  const isShown = folders.some(({ right }) => right !== 'hidden');
  if (isHidden && !isShown)
    refuse(
      path,
      place,
      'this user would see nothing of the drive; name a folder that is read-write or read-only',
    );
}
