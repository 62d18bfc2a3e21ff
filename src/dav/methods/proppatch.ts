import { answerMultistatus, responseXml } from '../answers/multistatus.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import { carryOut, isAnyRefused, planChanges, propstatsOf } from '../properties/property-changes.ts';
import { MICROSOFT_NAMESPACE } from '../properties/property-names.ts';
import { type Instruction, parsePropertyUpdate } from '../properties/property-update.ts';
import { prefersMinimal } from '../request-headers.ts';
import { requestHref } from '../resource-url.ts';

/** PROPPATCH (RFC 4918 §9.2): carries out all instructions in document order, or none. */
export async function proppatch(context: Context): Promise<void> {
  const { exchange, drive, path, request } = context;
  const instructions = parsePropertyUpdate(await context.xml.read(exchange));
  const entry = await drive.files.stat(path, exchange.signal);
  if (!entry) throw new DavError(404, `${path} does not exist`);
  const conditions = await checkConditions(context, entry);
  const planned = planChanges(context, instructions, entry);
  const outcome = await withRequestLock(
    context,
    conditions,
    [{ path }],
    async () => (isAnyRefused(planned) ? planned : carryOut(context, entry, planned)),
    { ownerMayOmitToken: instructions.every(isMicrosofts) },
  );
  if (prefersMinimal(request.headers)) {
    exchange.setHeader('Preference-Applied', 'return=minimal');
    // RFC 8144 §2.2: a refusal is told in full.
    if (!isAnyRefused(outcome)) return exchange.answer({ status: 204, headers: {}, body: undefined });
  }
  const href = requestHref(exchange, path, entry.kind === 'folder');
  await answerMultistatus(exchange, [responseXml(href, propstatsOf(outcome))]);
}

/** Office sets its properties without the token of its own lock, and treats a refusal as a failed save. */
function isMicrosofts({ element }: Instruction): boolean {
  return element.namespace === MICROSOFT_NAMESPACE;
}
