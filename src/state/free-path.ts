import { nameOf, namesOf, type Path, parentOf, pathOf } from '../util/path.ts';

/** The path, or with the first number behind its name that makes it free: `name (1).txt`. */
export function freePath(path: Path, isFree: (candidate: Path) => boolean): Path {
  const name = nameOf(path);
  const dot = name.lastIndexOf('.');
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  for (let number = 0, candidate = path; ; number++) {
    if (isFree(candidate)) return candidate;
    candidate = pathOf([...namesOf(parentOf(path)), `${stem} (${number + 1})${extension}`]);
  }
}
