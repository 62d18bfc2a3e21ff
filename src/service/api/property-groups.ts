import { failure, nested, type WireFailure } from './failures.ts';
import { list, required, string, struct, union } from './schema.ts';

/**
 * Property groups, and the templates that they are made by, are not here (`file_properties/*`). Whoever names a
 * template hears in each function's own union that there is none.
 */
const templateId = string({
  minLength: 1,
  pattern: { shown: '(/|ptid:).*', test: /^(?:\/|ptid:).*$/ },
});

/** Lists that the interface sets no limit to: what names no template needs no more. */
const ITEMS_MAX = 1000;

const propertyField = struct({ name: required(string()), value: required(string()) });

const propertyGroup = struct({
  template_id: required(templateId),
  fields: required(list(propertyField, { max: ITEMS_MAX })),
});

/** CommitInfo's `property_groups`. */
export const propertyGroups = list(propertyGroup, { max: ITEMS_MAX });

type PropertyGroups = ReturnType<typeof propertyGroups>;

/** TemplateFilterBase. */
export const templateFilter = union({ filter_some: list(templateId, { min: 1, max: ITEMS_MAX }) });

/** What `files/alpha/get_metadata` takes in place of a filter. */
export const templateIds = list(templateId, { max: ITEMS_MAX });

/** AlphaGetMetadataError where any template is named; its LookUpPropertiesError knows no other word for it. */
export function noSuchGroup(ids: readonly string[] | undefined): WireFailure | undefined {
  return ids?.length ? nested('properties_error', failure('property_group_not_found')) : undefined;
}

/** ListFolderError for a filter. */
export function templateError({ value: [id] }: ReturnType<typeof templateFilter>): WireFailure {
  return nested('template_error', templateNotFound(id));
}

/** UploadError and UploadSessionFinishError of a file that was saved, but without these groups, if there are any. */
export function propertiesError(groups: PropertyGroups | undefined): WireFailure | undefined {
  const [first] = groups ?? [];
  return first && nested('properties_error', templateNotFound(first.template_id));
}

function templateNotFound(id: string | undefined): WireFailure {
  return failure('template_not_found', { template_not_found: id });
}
