import { parseHttpDate } from '../headers.ts';
import { DAV_NAMESPACE } from '../xml/element.ts';
import { MICROSOFT_NAMESPACE, type PropertyName, propertyKey } from './names.ts';

/** As of `creationdate`; some programs know but one form. */
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i;
const SECONDS = /^\d{1,12}(\.\d+)?$/;

/** Beyond the year 9999 no date of HTTP can say it. */
const MS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59);

type Reader = (text: string) => number | undefined;

/** Properties whose setting sets the modification time: what they are called, and how they say it. */
const READERS: ReadonlyMap<string, Reader> = new Map([
  [propertyKey({ namespace: DAV_NAMESPACE, name: 'getlastmodified' }), dateOf],
  // rclone `SetModTime`.
  [
    propertyKey({ namespace: DAV_NAMESPACE, name: 'lastmodified' }),
    (text) => secondsOf(text) ?? dateOf(text),
  ],
  // Explorer, after each upload.
  [propertyKey({ namespace: MICROSOFT_NAMESPACE, name: 'Win32LastModifiedTime' }), dateOf],
]);

/** Whether setting this property sets the modification time. */
export function setsModified(name: PropertyName): boolean {
  return READERS.has(propertyKey(name));
}

/** The time that `text` says as a value of `name`, in ms since 1970; `undefined` when it says none. */
export function modifiedMsIn(name: PropertyName, text: string): number | undefined {
  const ms = READERS.get(propertyKey(name))?.(text.trim());
  return ms !== undefined && ms >= 0 && ms <= MS_MAX ? ms : undefined;
}

function secondsOf(text: string): number | undefined {
  return SECONDS.test(text) ? Math.round(Number(text) * 1000) : undefined;
}

function dateOf(text: string): number | undefined {
  return parseHttpDate(text) ?? (RFC_3339.test(text) ? Date.parse(text) : undefined);
}
