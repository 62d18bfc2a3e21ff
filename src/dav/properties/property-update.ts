import type { Entry, LinkSettings } from '../../drive/files.ts';
import type { DeadProperty, PropertyChange } from '../../state/properties.ts';
import { DavError } from '../errors.ts';
import { childrenOf, DAV_NAMESPACE, isDav, textOf, type XmlElement } from '../xml/xml-element.ts';
import { languageOf, standaloneXml } from '../xml/xml-writer.ts';
import { checksumsProperty, isChecksums } from './checksums.ts';
import { creationDateProperty, isCreationDate } from './creation-date.ts';
import { liveProperty } from './live-properties.ts';
import { DAVGATE_NAMESPACE, MICROSOFT_NAMESPACE, type PropertyName, propertyKey } from './property-names.ts';
import { parseIsoTime, parseSeconds, parseTime } from './property-times.ts';

/** Maximum number of properties that one PROPPATCH sets or removes; real clients send under ten. */
const INSTRUCTIONS_MAX = 256;

/** One property to set or remove (RFC 4918 §14.19); `element` is as it was sent. */
export interface Instruction {
  readonly action: 'set' | 'remove';
  readonly element: XmlElement;
  /** The `xml:lang` in effect around `element`. */
  readonly language: string | undefined;
}

/** The change that one instruction makes. `modified` without `ms` keeps the time; `link` without `settings` revokes it. */
export type PlannedChange =
  | { readonly kind: 'dead'; readonly change: PropertyChange }
  | { readonly kind: 'modified'; readonly ms: number | undefined }
  | { readonly kind: 'link'; readonly settings: LinkSettings | undefined }
  | RefusedChange;

export interface RefusedChange {
  readonly kind: 'refused';
  readonly status: number;
  readonly reason: string;
  /** Local name of a `DAV:` element (RFC 4918 §16). */
  readonly precondition?: string;
}

/** Parses `DAV:propertyupdate` to its instructions in document order. Throws `DavError` 400. */
export function parsePropertyUpdate(root: XmlElement | undefined): readonly Instruction[] {
  if (!root) throw new DavError(400, 'PROPPATCH needs a body with a DAV:propertyupdate element');
  if (!isDav(root, 'propertyupdate'))
    throw new DavError(400, `the body of PROPPATCH must be a DAV:propertyupdate element, not ${root.name}`);
  const instructions = childrenOf(root).flatMap((block) => instructionsIn(block, languageOf(root)));
  if (instructions.length === 0)
    throw new DavError(400, 'DAV:propertyupdate names no property to set or remove');
  if (instructions.length > INSTRUCTIONS_MAX)
    throw new DavError(
      400,
      `the PROPPATCH names ${instructions.length} properties; send at most ${INSTRUCTIONS_MAX} at a time`,
    );
  return instructions;
}

/** Parses `DAV:mkcol` (RFC 5689 §3): the properties to set, without the type of the folder. Throws `DavError` 400 or 403. */
export function parseMkcol(root: XmlElement): readonly Instruction[] {
  const instructions = childrenOf(root).flatMap((block) => instructionsIn(block, languageOf(root)));
  if (instructions.length > INSTRUCTIONS_MAX || instructions.some(({ action }) => action === 'remove'))
    throw new DavError(400, `DAV:mkcol may only set properties, at most ${INSTRUCTIONS_MAX}`);
  const isType = ({ element }: Instruction) => isDav(element, 'resourcetype');
  const types = instructions.filter(isType).flatMap(({ element }) => childrenOf(element));
  if (types.some((type) => !isDav(type, 'collection')))
    throw new DavError(
      403,
      'davgate makes only plain folders: DAV:resourcetype must be DAV:collection alone',
      {
        precondition: 'valid-resourcetype',
      },
    );
  return instructions.filter((instruction) => !isType(instruction));
}

function instructionsIn(block: XmlElement, outer: string | undefined): Instruction[] {
  const action = isDav(block, 'set') ? 'set' : isDav(block, 'remove') ? 'remove' : undefined;
  // Unknown elements are ignored (RFC 4918 §17).
  if (!action) return [];
  const props = childrenOf(block).filter((child) => isDav(child, 'prop'));
  if (props.length === 0) throw new DavError(400, `DAV:${action} contains no DAV:prop`);
  return props.flatMap((prop) => {
    const language = languageOf(prop) ?? languageOf(block) ?? outer;
    return childrenOf(prop).map((element) => ({ action, element, language }));
  });
}

export function propertyNameOf({ element }: Instruction): PropertyName {
  return { namespace: element.namespace, name: element.name };
}

/** Decides what the instruction changes, without changing anything. `nowMs` is in ms since 1970. */
export function planChange(instruction: Instruction, entry: Entry, nowMs: number): PlannedChange {
  const name = propertyNameOf(instruction);
  const isSet = instruction.action === 'set';
  if (isSharedLink(name)) return planLink(instruction, nowMs);
  if (isSet && setsModified(name)) return planModified(name, textOf(instruction.element));
  if (isSet && isChecksums(name)) return planChecksums(instruction, entry);
  if (isSet && isCreationDate(name)) return planCreationDate(instruction);
  if (liveProperty(name) && !isChecksums(name) && !isCreationDate(name))
    return {
      kind: 'refused',
      status: 403,
      reason: `${name.name} is a live property and cannot be ${isSet ? 'set' : 'removed'}`,
      precondition: 'cannot-modify-protected-property',
    };
  return { kind: 'dead', change: isSet ? { set: deadPropertyOf(instruction) } : { remove: name } };
}

function deadPropertyOf(instruction: Instruction): DeadProperty {
  const { element, language } = instruction;
  return { ...propertyNameOf(instruction), xml: standaloneXml(element, language) };
}

function planLink({ action, element }: Instruction, nowMs: number): PlannedChange {
  if (action === 'remove') return { kind: 'link', settings: undefined };
  try {
    return { kind: 'link', settings: linkSettingsOf(element, nowMs) };
  } catch (error) {
    if (!(error instanceof DavError)) throw error;
    return { kind: 'refused', status: error.status, reason: error.message };
  }
}

function planModified(name: PropertyName, text: string): PlannedChange {
  const ms = modifiedMsIn(name, text);
  // Explorer sends 1601 for an unknown time.
  if (ms === undefined && name.namespace !== MICROSOFT_NAMESPACE)
    return {
      kind: 'refused',
      status: 409,
      reason: `the value of ${name.name} is not a time since 1970, such as Sat, 31 Jan 2026 12:00:00 GMT`,
    };
  return { kind: 'modified', ms };
}

function planChecksums({ element }: Instruction, entry: Entry): PlannedChange {
  const checksums = textOf(element).split(/\s+/).filter(Boolean);
  const property = entry.kind === 'file' ? checksumsProperty(entry, checksums) : undefined;
  if (property) return { kind: 'dead', change: { set: property } };
  return {
    kind: 'refused',
    status: 409,
    reason: 'checksums can be set on files only, as in SHA1:da39a3ee5e6b4b0d3255bfef95601890afd80709',
  };
}

function planCreationDate({ element }: Instruction): PlannedChange {
  const ms = parseTime(textOf(element).trim());
  if (ms !== undefined) return { kind: 'dead', change: { set: creationDateProperty(ms) } };
  return {
    kind: 'refused',
    status: 409,
    reason: 'the value of creationdate is not a time such as 2026-01-31T12:00:00Z',
  };
}

type TimeParser = (text: string) => number | undefined;

/** The properties that set the modification time, and how their values are parsed. */
const MODIFIED_PARSERS: ReadonlyMap<string, TimeParser> = new Map([
  [propertyKey({ namespace: DAV_NAMESPACE, name: 'getlastmodified' }), parseTime],
  // rclone's `SetModTime`.
  [
    propertyKey({ namespace: DAV_NAMESPACE, name: 'lastmodified' }),
    (text) => parseSeconds(text) ?? parseTime(text),
  ],
  // Explorer sets it after each upload.
  [propertyKey({ namespace: MICROSOFT_NAMESPACE, name: 'Win32LastModifiedTime' }), parseTime],
]);

function setsModified(name: PropertyName): boolean {
  return MODIFIED_PARSERS.has(propertyKey(name));
}

/** Returns the time in ms since 1970; `undefined` for other text and for times before 1970. */
function modifiedMsIn(name: PropertyName, text: string): number | undefined {
  const ms = MODIFIED_PARSERS.get(propertyKey(name))?.(text.trim());
  return ms !== undefined && ms >= 0 ? ms : undefined;
}

const LINK_SETTINGS = ['visibility', 'password', 'expires'] as const;

function isSharedLink({ namespace, name }: PropertyName): boolean {
  return namespace === DAVGATE_NAMESPACE && name === 'shared-link';
}

/**
 * Parses the settings in a `shared-link` that a PROPPATCH sets. An empty one means the service's defaults; otherwise it
 * contains any of
 *
 *     <shared-link xmlns="https://davgate.dev/ns">
 *       <visibility>public</visibility>          or password
 *       <password>…</password>                   implies visibility password
 *       <expires>2030-01-31T12:00:00Z</expires>
 *     </shared-link>
 *
 * The visibility may also be the property's plain text. Throws `DavError` 409, never with the password in its message.
 */
function linkSettingsOf(element: XmlElement, nowMs: number): LinkSettings {
  const children = childrenOf(element);
  const unknown = children.find(
    (child) => child.namespace !== DAVGATE_NAMESPACE || !LINK_SETTINGS.some((name) => name === child.name),
  );
  if (unknown)
    throw new DavError(409, `shared-link has no setting ${unknown.name}; it has ${LINK_SETTINGS.join(', ')}`);
  if (new Set(children.map((child) => child.name)).size < children.length)
    throw new DavError(409, 'shared-link contains a setting twice');
  const settingOf = (name: (typeof LINK_SETTINGS)[number]) => {
    const child = children.find((one) => one.name === name);
    return child && textOf(child).trim();
  };
  const password = settingOf('password');
  const requested = children.length === 0 ? textOf(element).trim() || undefined : settingOf('visibility');
  const visibility = visibilityOf(requested, password);
  const expires = settingOf('expires');
  return {
    ...(visibility && { visibility }),
    ...(password !== undefined && { password }),
    ...(expires !== undefined && { expiresMs: expiresMsOf(expires, nowMs) }),
  };
}

function visibilityOf(
  requested: string | undefined,
  password: string | undefined,
): LinkSettings['visibility'] {
  if (requested !== undefined && requested !== 'public' && requested !== 'password')
    throw new DavError(409, 'the visibility of a shared-link must be public or password');
  if (password === '') throw new DavError(409, 'the password of a shared-link must not be empty');
  if (requested === 'public' && password !== undefined)
    throw new DavError(409, 'a shared-link with a password cannot have the visibility public');
  if (requested === 'password' && password === undefined)
    throw new DavError(409, 'a shared-link with the visibility password needs a password');
  return password === undefined ? requested : 'password';
}

function expiresMsOf(text: string, nowMs: number): number {
  const ms = parseIsoTime(text);
  if (ms === undefined) throw new DavError(409, 'expires must be a time such as 2030-01-31T12:00:00Z');
  if (ms <= nowMs) throw new DavError(409, 'expires must be in the future');
  return ms;
}
