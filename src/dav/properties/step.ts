import type { Entry, LinkSettings } from '../../drive/files.ts';
import type { PropertyChange } from '../../state/properties.ts';
import { DavError } from '../errors.ts';
import { textOf } from '../xml/element.ts';
import { checksumsProperty, isChecksums } from './checksums.ts';
import { liveProperty } from './live.ts';
import { MICROSOFT_NAMESPACE, type PropertyName } from './names.ts';
import { isSharedLink, linkSettingsOf } from './shared-link.ts';
import { modifiedMsIn, setsModified } from './times.ts';
import { deadPropertyOf, type Instruction, nameOfProperty } from './update.ts';

/**
 * What one instruction of a PROPPATCH comes to. A time without `ms` stays as it is; a link without
 * `settings` is revoked.
 */
export type Step =
  | { readonly kind: 'dead'; readonly change: PropertyChange }
  | { readonly kind: 'modified'; readonly ms: number | undefined }
  | { readonly kind: 'link'; readonly settings: LinkSettings | undefined }
  | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  readonly status: number;
  readonly reason: string;
  readonly condition?: string;
}

/** Decides without changing anything; `nowMs` in milliseconds since 1970. */
export function stepOf(instruction: Instruction, entry: Entry, nowMs: number): Step {
  const name = nameOfProperty(instruction);
  const isSet = instruction.action === 'set';
  if (isSharedLink(name)) return linkStep(instruction, nowMs);
  if (isSet && setsModified(name)) return timeStep(name, textOf(instruction.element));
  if (isSet && isChecksums(name)) return checksumsStep(instruction, entry);
  if (liveProperty(name) && !isChecksums(name))
    return {
      kind: 'refused',
      status: 403,
      reason: `${name.name} is computed and cannot be ${isSet ? 'set' : 'removed'}`,
      condition: 'cannot-modify-protected-property',
    };
  return { kind: 'dead', change: isSet ? { set: deadPropertyOf(instruction) } : { remove: name } };
}

function linkStep({ action, element }: Instruction, nowMs: number): Step {
  if (action === 'remove') return { kind: 'link', settings: undefined };
  try {
    return { kind: 'link', settings: linkSettingsOf(element, nowMs) };
  } catch (error) {
    if (!(error instanceof DavError)) throw error;
    return { kind: 'refused', status: error.status, reason: error.message };
  }
}

function timeStep(name: PropertyName, text: string): Step {
  const ms = modifiedMsIn(name, text);
  // Explorer says 1601 for a time that it does not know.
  if (ms === undefined && name.namespace !== MICROSOFT_NAMESPACE)
    return { kind: 'refused', status: 409, reason: `the value of ${name.name} is no time from 1970 on` };
  return { kind: 'modified', ms };
}

function checksumsStep({ element }: Instruction, entry: Entry): Step {
  const words = textOf(element).split(/\s+/).filter(Boolean);
  const property = entry.kind === 'file' ? checksumsProperty(entry, words) : undefined;
  if (property) return { kind: 'dead', change: { set: property } };
  return { kind: 'refused', status: 409, reason: 'checksums are of a file, and such as SHA1:da39a3ee' };
}
