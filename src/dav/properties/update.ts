import type { DeadProperty } from '../../state/properties.ts';
import { DavError } from '../errors.ts';
import { childrenOf, isDav, type XmlElement } from '../xml/element.ts';
import { languageOf, standaloneXml } from '../xml/write.ts';
import type { PropertyName } from './names.ts';

/** Maximum number of properties that one PROPPATCH sets or removes; real clients send under ten. */
const INSTRUCTIONS_MAX = 256;

/** One property of a PROPPATCH (RFC 4918 §14.19); `element` is as it was sent. */
export interface Instruction {
  readonly action: 'set' | 'remove';
  readonly element: XmlElement;
  /** The `xml:lang` around it. */
  readonly language: string | undefined;
}

/** What a PROPPATCH body asks for, in document order. Throws `DavError` 400. */
export function instructionsOf(root: XmlElement | undefined): readonly Instruction[] {
  if (!root) throw new DavError(400, 'PROPPATCH needs a body: a DAV:propertyupdate element');
  if (!isDav(root, 'propertyupdate'))
    throw new DavError(400, `the body of PROPPATCH must be a DAV:propertyupdate element, not ${root.name}`);
  const instructions = childrenOf(root).flatMap((block) => instructionsIn(block, languageOf(root)));
  if (instructions.length === 0)
    throw new DavError(400, 'the DAV:propertyupdate names no property to set or remove');
  if (instructions.length > INSTRUCTIONS_MAX)
    throw new DavError(
      400,
      `a PROPPATCH may name ${INSTRUCTIONS_MAX} properties, not ${instructions.length}; send several`,
    );
  return instructions;
}

function instructionsIn(block: XmlElement, outer: string | undefined): Instruction[] {
  const action = isDav(block, 'set') ? 'set' : isDav(block, 'remove') ? 'remove' : undefined;
  // RFC 4918 §17: elements that are not known are passed over.
  if (!action) return [];
  const props = childrenOf(block).filter((child) => isDav(child, 'prop'));
  if (props.length === 0) throw new DavError(400, `a DAV:${action} has no DAV:prop`);
  return props.flatMap((prop) => {
    const language = languageOf(prop) ?? languageOf(block) ?? outer;
    return childrenOf(prop).map((element) => ({ action, element, language }));
  });
}

export function nameOfProperty({ element }: Instruction): PropertyName {
  return { namespace: element.namespace, name: element.name };
}

/** The property as it is to be kept and shown again. */
export function deadPropertyOf({ element, language }: Instruction): DeadProperty {
  return {
    namespace: element.namespace,
    name: element.name,
    xml: standaloneXml(element, language),
  };
}
