import { failure, nested, type WireFailure } from './failures.ts';
import { list, required, string, struct, union } from './schema.ts';

/**
 * Property groups and their templates are not supported (`file_properties/*`). A call that names a template gets the
 * error for an unknown template in its function's own union.
 */
const templateId = string({
  minLength: 1,
  pattern: { shown: '(/|ptid:).*', test: /^(?:\/|ptid:).*$/ },
});

/** Maximum length of lists for which the API has no limit. */
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

/** The field of `files/alpha/get_metadata` in place of a filter. */
export const templateIds = list(templateId, { max: ITEMS_MAX });

/** Returns the AlphaGetMetadataError for any template; its LookUpPropertiesError has no other member for it. */
export function noSuchGroup(ids: readonly string[] | undefined): WireFailure | undefined {
  return ids?.length ? nested('properties_error', failure('property_group_not_found')) : undefined;
}

/** Returns the ListFolderError for a filter. */
export function templateError({ value: [id] }: ReturnType<typeof templateFilter>): WireFailure {
  return nested('template_error', templateNotFound(id));
}

/**
 * Returns the UploadError or UploadSessionFinishError of a file that was saved without these groups; `undefined`
 * without groups.
 */
export function propertiesError(groups: PropertyGroups | undefined): WireFailure | undefined {
  const [first] = groups ?? [];
  return first && nested('properties_error', templateNotFound(first.template_id));
}

function templateNotFound(id: string | undefined): WireFailure {
  return failure('template_not_found', { template_not_found: id });
}
