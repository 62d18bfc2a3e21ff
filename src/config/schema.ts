import { BANDWIDTH_SCHEMA } from './bandwidth.ts';
import { DRIVE_NAME, TOP_KEYS } from './config-file.ts';
import { FOLDERS_SCHEMA } from './folder-grants.ts';
import { DRIVE_SETTINGS, helpOf, OPTIONS, type SettingName, SHARED_DRIVE_SETTINGS } from './settings.ts';
import { GRANT_KEYS, USER_KEYS } from './user-keys.ts';

/** A part of a JSON schema. */
type Schema = Readonly<Record<string, unknown>>;

/** Returns the JSON schema (draft-07, which editors know) of configuration files. */
export function configSchema(): Schema {
  const { schema, drives, users, bandwidth } = TOP_KEYS;
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Configuration of davgate',
    type: 'object',
    additionalProperties: false,
    properties: {
      [schema]: { type: 'string', description: 'the address of this schema, for editors' },
      ...settingsSchema((name) => name !== 'config'),
      [drives]: {
        description: `drives by name. ${[...SHARED_DRIVE_SETTINGS].join(', ')} at the top hold for all of them`,
        type: 'object',
        minProperties: 1,
        propertyNames: { pattern: DRIVE_NAME.source },
        additionalProperties: {
          // A drive without settings may be written as nothing.
          type: ['object', 'null'],
          additionalProperties: false,
          properties: settingsSchema((name) => DRIVE_SETTINGS.has(name)),
        },
      },
      [bandwidth]: {
        description: 'maximum bytes of files in a second, for all users together',
        ...BANDWIDTH_SCHEMA,
      },
      [users]: { description: 'the users', type: 'array', minItems: 1, items: userSchema() },
    },
  };
}

function settingsSchema(isAllowed: (name: SettingName) => boolean): Schema {
  const rows = OPTIONS.filter(({ name }) => isAllowed(name));
  return Object.fromEntries(rows.map((row) => [row.name, settingSchema(row)]));
}

function settingSchema(row: (typeof OPTIONS)[number]): Schema {
  const description = helpOf(row);
  if (!('value' in row)) return { description, type: ['boolean', 'string'] };
  const words = row.value.split('|');
  // A word in capitals stands for any text.
  const choices = words.length > 1 && !/[A-Z]/.test(row.value) ? { enum: words } : {};
  return {
    description,
    type: 'string',
    ...choices,
    ...('default' in row && { default: row.default }),
    // An empty root is the whole account.
    ...(row.name !== 'root' && { minLength: 1 }),
  };
}

function userSchema(): Schema {
  return {
    type: 'object',
    additionalProperties: false,
    required: USER_KEYS.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    properties: propertiesOf(USER_KEYS),
    allOf: [
      // A user without either has a password, or signs in, elsewhere.
      { not: { required: ['password', 'password-hash'] } },
      { oneOf: [{ required: ['drive'] }, { required: ['drives'] }] },
    ],
  };
}

function propertiesOf(keys: readonly (typeof USER_KEYS)[number][]): Schema {
  return Object.fromEntries(
    keys.map(({ name, help, type }) => [
      name,
      {
        description: help,
        type,
        ...(type === 'string' && { minLength: 1 }),
        ...(type === 'object' && (name === 'folders' ? FOLDERS_SCHEMA : BANDWIDTH_SCHEMA)),
        ...(type === 'array' && { minItems: 1, items: grantSchema() }),
      },
    ]),
  );
}

/** One in the list of a user's drives: a name, or an object. */
function grantSchema(): Schema {
  const isOfGrant = ({ name }: (typeof USER_KEYS)[number]) => GRANT_KEYS.some((key) => key === name);
  return {
    anyOf: [
      { type: 'string', minLength: 1 },
      {
        type: 'object',
        additionalProperties: false,
        required: ['drive'],
        properties: propertiesOf(USER_KEYS.filter(isOfGrant)),
      },
    ],
  };
}
