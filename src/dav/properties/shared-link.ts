import type { LinkSettings } from '../../drive/files.ts';
import { DavError } from '../errors.ts';
import { childrenOf, textOf, type XmlElement } from '../xml/xml-element.ts';
import { DAVGATE_NAMESPACE, type PropertyName } from './property-names.ts';

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i;

const SETTINGS = ['visibility', 'password', 'expires'] as const;

export function isSharedLink({ namespace, name }: PropertyName): boolean {
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
export function linkSettingsOf(element: XmlElement, nowMs: number): LinkSettings {
  const children = childrenOf(element);
  const unknown = children.find(
    (child) => child.namespace !== DAVGATE_NAMESPACE || !SETTINGS.some((name) => name === child.name),
  );
  if (unknown)
    throw new DavError(409, `shared-link has no setting ${unknown.name}; it has ${SETTINGS.join(', ')}`);
  if (new Set(children.map((child) => child.name)).size < children.length)
    throw new DavError(409, 'shared-link contains a setting twice');
  const settingOf = (name: (typeof SETTINGS)[number]) => {
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
  const ms = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new DavError(409, 'expires must be a time such as 2030-01-31T12:00:00Z');
  if (ms <= nowMs) throw new DavError(409, 'expires must be in the future');
  return ms;
}
