import type { FolderEntry } from '../../drive/files.ts';
import { nameOf } from '../../util/path.ts';
import { XML_DECLARATION, XML_TYPE } from '../answers/multistatus.ts';
import { checkConditions, requireParent } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError, methodNotAllowed } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import {
  carryOut,
  isAnyRefused,
  type NamedChange,
  planChanges,
  propstatsOf,
} from '../properties/property-changes.ts';
import { type Instruction, parseMkcol } from '../properties/property-update.ts';
import { hrefOf } from '../resource-url.ts';
import { refuseBody } from '../unused-body.ts';
import { isDav } from '../xml/xml-element.ts';

const NO_INSTRUCTIONS: readonly Instruction[] = [];

/**
 * MKCOL (RFC 4918 §9.3), with properties (RFC 5689): all of them are set, or there is no folder. rclone sends one before each
 * upload, so an existing folder costs no call of the service.
 */
export async function mkcol(context: Context): Promise<void> {
  const { drive, path, exchange } = context;
  const instructions = await instructionsIn(context);
  const entry = await drive.files.stat(path, exchange.signal);
  if (entry) throw methodNotAllowed(`${path} already exists: it is a ${entry.kind}`, entry);
  const conditions = await checkConditions(context, entry);
  const expected: FolderEntry = { kind: 'folder', id: '', path, name: nameOf(path) };
  const planned = planChanges(context, instructions, expected);
  if (isAnyRefused(planned)) return refuse(context, planned);
  const outcome = await withRequestLock(context, conditions, [{ path, membership: true }], async () => {
    await requireParent(context, path);
    const folder = await drive.files.createFolder(path);
    return planned.length === 0 ? planned : setProperties(context, folder, planned);
  });
  if (isAnyRefused(outcome)) return refuse(context, outcome);
  await exchange.answer({
    status: 201,
    headers: { Location: hrefOf(exchange, path, true) },
    body: undefined,
  });
}

/** Returns the properties to set; none without a body. Throws `DavError` 415 for any other body. */
async function instructionsIn({ exchange, request, xml }: Context): Promise<readonly Instruction[]> {
  if (!/[/+]xml\b/i.test(request.headers['content-type'] ?? '')) {
    await refuseBody(exchange);
    return NO_INSTRUCTIONS;
  }
  const root = await xml.read(exchange);
  if (!root) return NO_INSTRUCTIONS;
  if (!isDav(root, 'mkcol'))
    throw new DavError(415, `MKCOL takes no body but a DAV:mkcol element, and this is ${root.name}`);
  return parseMkcol(root);
}

/** Sets the properties of the new folder, and removes it when one of them is refused. */
async function setProperties(
  context: Context,
  folder: FolderEntry,
  planned: readonly NamedChange[],
): Promise<readonly NamedChange[]> {
  const { files } = context.drive;
  const undo = async () => {
    const { children } = await files.list(folder.path);
    // Somebody else may have put something into it already, and may do so now: the trash has it then.
    if (children.length === 0) await files.remove(folder.path, { recoverable: true });
  };
  try {
    const outcome = await carryOut(context, folder, planned);
    if (isAnyRefused(outcome)) await undo();
    return outcome;
  } catch (error) {
    await undo();
    throw error;
  }
}

/** Tells which properties are refused (RFC 5689 §3.3). */
async function refuse({ exchange }: Context, changes: readonly NamedChange[]): Promise<void> {
  const { change } = changes.find((one) => one.change.kind === 'refused') ?? {};
  const status = change?.kind === 'refused' ? change.status : 403;
  const body = `${XML_DECLARATION}<D:mkcol-response xmlns:D="DAV:">${propstatsOf(changes)}</D:mkcol-response>`;
  await exchange.answer({ status, headers: { 'Content-Type': XML_TYPE }, body });
}
