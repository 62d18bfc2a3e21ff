import { DavError } from '../errors.ts';
import { childrenOf, davChild, isDav, type XmlElement } from '../xml/element.ts';
import { type PropertyName, propertyKey } from './names.ts';

/** Each name costs an element in each row; real clients name under thirty. */
const NAMES_MAX = 256;

/** What a PROPFIND asks to see (RFC 4918 §14.20). `names` of `allprop` are those of `include`. */
export type PropertyRequest =
  | { readonly kind: 'prop' | 'allprop'; readonly names: readonly PropertyName[] }
  | { readonly kind: 'propname' };

/** An absent body asks for all (§9.1). Throws `DavError` 400. */
export function propertyRequestOf(root: XmlElement | undefined): PropertyRequest {
  if (!root) return { kind: 'allprop', names: [] };
  if (!isDav(root, 'propfind'))
    throw new DavError(400, `the body of PROPFIND must be a DAV:propfind element, not ${root.name}`);
  const wanted = childrenOf(root).filter((child) =>
    ['prop', 'allprop', 'propname'].some((name) => isDav(child, name)),
  );
  const [what] = wanted;
  if (!what || wanted.length > 1)
    throw new DavError(400, 'a DAV:propfind holds exactly one of DAV:prop, DAV:allprop and DAV:propname');
  if (isDav(what, 'propname')) return { kind: 'propname' };
  if (isDav(what, 'prop')) return { kind: 'prop', names: namesIn(what) };
  const include = davChild(root, 'include');
  return { kind: 'allprop', names: include ? namesIn(include) : [] };
}

/** The names of the elements in `container`, each once. */
function namesIn(container: XmlElement): PropertyName[] {
  const names = new Map<string, PropertyName>();
  for (const { namespace, name } of childrenOf(container))
    names.set(propertyKey({ namespace, name }), { namespace, name });
  if (names.size > NAMES_MAX)
    throw new DavError(400, `a PROPFIND may name ${NAMES_MAX} properties, not ${names.size}`);
  return [...names.values()];
}
