import { FileError } from '../../drive/errors.ts';
import type { Entry } from '../../drive/files.ts';
import { type DeadProperty, PropertiesFull, type PropertyChange } from '../../state/properties.ts';
import { propstatXml } from '../answers/multistatus.ts';
import { clientOf } from '../clients.ts';
import type { Context } from '../context.ts';
import { statusOf } from '../failures.ts';
import { emptyProperty, isSameProperty, type PropertyName, propertyKey } from './property-names.ts';
import {
  type Instruction,
  type PlannedChange,
  planChange,
  propertyNameOf,
  type RefusedChange,
} from './property-update.ts';

/** A change of one property, planned or refused. */
export interface NamedChange {
  readonly name: PropertyName;
  readonly change: PlannedChange;
}

/** Decides what the instructions change at `entry`, without changing anything. */
export function planChanges(
  { clock }: Pick<Context, 'clock'>,
  instructions: readonly Instruction[],
  entry: Entry,
): readonly NamedChange[] {
  return instructions.map((instruction) => ({
    name: propertyNameOf(instruction),
    change: planChange(instruction, entry, clock.now()),
  }));
}

export function isAnyRefused(changes: readonly NamedChange[]): boolean {
  return changes.some(({ change }) => change.kind === 'refused');
}

/**
 * Makes all changes, or none: undoes the parts already done when one fails, and returns the changes with the refused ones.
 * The shared link comes last, because it cannot be undone.
 */
export async function carryOut(
  context: Context,
  entry: Entry,
  planned: readonly NamedChange[],
): Promise<readonly NamedChange[]> {
  const undo: (() => Promise<unknown>)[] = [];
  for (const part of [changeDead, changeTime, changeLink]) {
    try {
      undo.push(
        await part.run(
          context,
          entry,
          planned.map(({ change }) => change),
        ),
      );
    } catch (error) {
      for (const revert of undo.reverse()) await revert();
      const refusal = refusalOf(error, context);
      return planned.map((one) =>
        one.change.kind === part.kind ? { name: one.name, change: refusal } : one,
      );
    }
  }
  return planned;
}

interface Part {
  readonly kind: PlannedChange['kind'];
  /** Makes the changes of this kind, and returns a function that undoes them. */
  readonly run: (
    context: Context,
    entry: Entry,
    planned: readonly PlannedChange[],
  ) => Promise<() => Promise<unknown>>;
}

const changeDead: Part = {
  kind: 'dead',
  run: async ({ drive }, { id }, planned) => {
    const changes = planned.filter((one) => one.kind === 'dead').map((one) => one.change);
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
  run: async ({ drive, path }, { modifiedMs }, planned) => {
    const ms = planned.filter((one) => one.kind === 'modified').at(-1)?.ms;
    if (ms === undefined) return async () => {};
    await drive.files.setModified(path, ms);
    return async () => modifiedMs !== undefined && drive.files.setModified(path, modifiedMs);
  },
};

const changeLink: Part = {
  kind: 'link',
  run: async ({ drive, path }, _, planned) => {
    const last = planned.filter((one) => one.kind === 'link').at(-1);
    if (last?.settings) await drive.files.shareLink(path, last.settings);
    else if (last) await drive.files.unshareLink(path);
    return async () => {};
  },
};

function inverse(change: PropertyChange, before: readonly DeadProperty[]): PropertyChange {
  const { namespace, name } = 'set' in change ? change.set : change.remove;
  const old = before.find((property) => isSameProperty(property, { namespace, name }));
  return old ? { set: old } : { remove: { namespace, name } };
}

function refusalOf(error: unknown, { request }: Context): RefusedChange {
  if (error instanceof PropertiesFull) return { kind: 'refused', status: 507, reason: error.message };
  if (error instanceof FileError)
    return { kind: 'refused', status: statusOf(error, clientOf(request)), reason: error.message };
  throw error;
}

/** Renders 200 for all properties, or the refused ones and 424 for the others (§9.2.1). Each name appears once. */
export function propstatsOf(outcome: readonly NamedChange[]): string {
  const refusals = new Map<string, RefusedChange>();
  for (const { name, change } of outcome)
    if (change.kind === 'refused' && !refusals.has(propertyKey(name)))
      refusals.set(propertyKey(name), change);
  const names = [...new Map(outcome.map(({ name }) => [propertyKey(name), name])).values()];
  const rest = names.filter((name) => !refusals.has(propertyKey(name)));
  const xmlOf = (some: readonly PropertyName[]) => some.map(emptyProperty).join('');
  if (refusals.size === 0) return propstatXml(200, xmlOf(rest));
  const refused = names.flatMap((name) => {
    const refusal = refusals.get(propertyKey(name));
    return refusal
      ? [propstatXml(refusal.status, emptyProperty(name), refusal.reason, refusal.precondition)]
      : [];
  });
  return refused.join('') + (rest.length > 0 ? propstatXml(424, xmlOf(rest)) : '');
}
