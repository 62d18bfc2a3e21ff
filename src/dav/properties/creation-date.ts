import type { Entry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { DAV_NAMESPACE } from '../xml/xml-element.ts';
import { isSameProperty, MICROSOFT_NAMESPACE, type PropertyName } from './property-names.ts';
import { isoTime, parseTime } from './property-times.ts';

const NAME: PropertyName = { namespace: DAV_NAMESPACE, name: 'creationdate' };

/** Explorer sets it after each upload. */
const WINDOWS_NAME: PropertyName = { namespace: MICROSOFT_NAMESPACE, name: 'Win32CreationTime' };

export function isCreationDate(name: PropertyName): boolean {
  return isSameProperty(name, NAME);
}

/** Returns the dead property that stores a creation date, in ms since 1970. The service keeps none. */
export function creationDateProperty(ms: number): DeadProperty {
  return { ...NAME, xml: `<creationdate xmlns="${DAV_NAMESPACE}">${isoTime(ms)}</creationdate>` };
}

/**
 * Returns when a resource was created, in ms since 1970: the date that a client has set, else the earliest known time of its
 * content. A deleted file was created among the deleted ones when it was deleted: clients that copy it keep its modification
 * time, and show this one.
 */
export function creationMsOf(entry: Entry, dead: readonly DeadProperty[]): number | undefined {
  if (entry.kind === 'file' && entry.deletedMs !== undefined) return entry.deletedMs;
  const setMs = dead.length === 0 ? undefined : setCreationMs(dead);
  if (setMs !== undefined) return setMs;
  return entry.kind === 'folder' ? entry.modifiedMs : Math.min(entry.modifiedMs, entry.committedMs);
}

function setCreationMs(dead: readonly DeadProperty[]): number | undefined {
  const ms = timeIn(dead.find((property) => isSameProperty(property, NAME)));
  if (ms !== undefined) return ms;
  const windowsMs = timeIn(dead.find((property) => isSameProperty(property, WINDOWS_NAME)));
  // Explorer sends 1601 for an unknown time.
  return windowsMs !== undefined && windowsMs > 0 ? windowsMs : undefined;
}

function timeIn(property: DeadProperty | undefined): number | undefined {
  const text = property && /^<[^>]*>([^<]*)</.exec(property.xml)?.[1];
  return text === undefined ? undefined : parseTime(text.trim());
}
