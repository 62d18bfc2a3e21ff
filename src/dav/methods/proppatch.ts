import { FileError } from '../../drive/errors.ts';
import type { Entry } from '../../drive/files.ts';
import { type DeadProperty, PropertiesFull, type PropertyChange } from '../../state/properties.ts';
import { answerMultistatus, multistatusBody, propstatXml, responseXml } from '../answers/multistatus.ts';
import { checkConditions } from '../conditions/preconditions.ts';
import { DavError } from '../errors.ts';
import { withRequestLock } from '../locks/request-lock.ts';
import type { Context } from '../method.ts';
import { emptyProperty, MICROSOFT_NAMESPACE, type PropertyName, propertyKey } from '../properties/names.ts';
import { type Refusal, type Step, stepOf } from '../properties/step.ts';
import { type Instruction, instructionsOf, nameOfProperty } from '../properties/update.ts';
import { requestHref } from '../request-href.ts';
import { statusOf } from '../status.ts';

interface Planned {
  readonly name: PropertyName;
  readonly step: Step;
}

/** RFC 4918 §9.2: all instructions in document order, or none. */
export async function proppatch(context: Context): Promise<void> {
  const { request, response, drive, path, signal } = context;
  const instructions = instructionsOf(await context.xml.read(context.body));
  const entry = await drive.files.stat(path, signal);
  if (!entry) throw new DavError(404, `there is nothing at ${path}`);
  const conditions = await checkConditions(context, entry);
  const planned = instructions.map((instruction) => ({
    name: nameOfProperty(instruction),
    step: stepOf(instruction, entry, context.clock.now()),
  }));
  const refused = planned.some(({ step }) => step.kind === 'refused');
  const outcome = await withRequestLock(
    context,
    conditions,
    [{ path }],
    async () => (refused ? planned : carryOut(context, entry, planned)),
    { ownerMayOmitToken: instructions.every(isMicrosofts) },
  );
  const href = requestHref(request.url ?? '', path, entry.kind === 'folder');
  answerMultistatus(response, multistatusBody([responseXml(href, propstatsOf(outcome))]));
}

/** Office sets these without the token of its own lock, and takes a refusal for a failed save. */
function isMicrosofts({ element }: Instruction): boolean {
  return element.namespace === MICROSOFT_NAMESPACE;
}

/** Each part undoes the ones before it when it fails; the service, which cannot be undone, comes last. */
async function carryOut(
  context: Context,
  entry: Entry,
  planned: readonly Planned[],
): Promise<readonly Planned[]> {
  const undo: (() => Promise<unknown>)[] = [];
  for (const part of [changeDead, changeTime, changeLink]) {
    try {
      undo.push(
        await part.run(
          context,
          entry,
          planned.map(({ step }) => step),
        ),
      );
    } catch (error) {
      for (const back of undo.reverse()) await back();
      const refusal = refusalOf(error, context);
      return planned.map((one) => (one.step.kind === part.kind ? { name: one.name, step: refusal } : one));
    }
  }
  return planned;
}

interface Part {
  readonly kind: Step['kind'];
  /** Does it, and returns how to undo it. */
  readonly run: (context: Context, entry: Entry, steps: readonly Step[]) => Promise<() => Promise<unknown>>;
}

const changeDead: Part = {
  kind: 'dead',
  run: async ({ drive }, { id }, steps) => {
    const changes = steps.filter((step) => step.kind === 'dead').map((step) => step.change);
    if (changes.length === 0) return async () => {};
    const before = (await drive.state.properties.of([id])).get(id) ?? [];
    await drive.state.properties.change(id, changes);
    return () =>
      drive.state.properties.change(
        id,
        changes.map((change) => inverse(change, before)),
      );
  },
};

const changeTime: Part = {
  kind: 'modified',
  run: async ({ drive, path }, { modifiedMs }, steps) => {
    const ms = steps.filter((step) => step.kind === 'modified').at(-1)?.ms;
    if (ms === undefined) return async () => {};
    await drive.files.setModified(path, ms);
    return async () => modifiedMs !== undefined && drive.files.setModified(path, modifiedMs);
  },
};

const changeLink: Part = {
  kind: 'link',
  run: async ({ drive, path }, _, steps) => {
    const last = steps.filter((step) => step.kind === 'link').at(-1);
    if (last?.settings) await drive.files.shareLink(path, last.settings);
    else if (last) await drive.files.unshareLink(path);
    return async () => {};
  },
};

function inverse(change: PropertyChange, before: readonly DeadProperty[]): PropertyChange {
  const { namespace, name } = 'set' in change ? change.set : change.remove;
  const old = before.find((property) => property.namespace === namespace && property.name === name);
  return old ? { set: old } : { remove: { namespace, name } };
}

function refusalOf(error: unknown, { client }: Context): Refusal {
  if (error instanceof PropertiesFull) return { kind: 'refused', status: 507, reason: error.message };
  if (error instanceof FileError)
    return { kind: 'refused', status: statusOf(error, client), reason: error.message };
  throw error;
}

/** Success for all, or what was wrong with some and 424 for the rest (§9.2.1). Each name stands once. */
function propstatsOf(outcome: readonly Planned[]): string {
  const refusals = new Map<string, Refusal>();
  for (const { name, step } of outcome)
    if (step.kind === 'refused' && !refusals.has(propertyKey(name))) refusals.set(propertyKey(name), step);
  const names = [...new Map(outcome.map(({ name }) => [propertyKey(name), name])).values()];
  const rest = names.filter((name) => !refusals.has(propertyKey(name)));
  const xmlOf = (some: readonly PropertyName[]) => some.map(emptyProperty).join('');
  if (refusals.size === 0) return propstatXml(200, xmlOf(rest));
  const refused = names.flatMap((name) => {
    const refusal = refusals.get(propertyKey(name));
    return refusal
      ? [propstatXml(refusal.status, emptyProperty(name), refusal.reason, refusal.condition)]
      : [];
  });
  return refused.join('') + (rest.length > 0 ? propstatXml(424, xmlOf(rest)) : '');
}
