// Schemas of Millrace itself: one TypeBox definition yields the TypeScript type, a compiled check, readable problems
// and the JSON Schema. The result is a Standard Schema, like the schemas of users.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/schema';
import { Settings } from 'typebox/system';

/** A problem and its location: `path` is a JSON pointer. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export interface Schema<T> {
  readonly '~standard': StandardSchemaV1.Props<T, T> & StandardJSONSchemaV1.Props<T, T>;
  readonly definition: TSchema;
  readonly check: (value: unknown) => value is T;
  /** All problems; empty if the value is valid. */
  readonly problems: (value: unknown) => readonly Problem[];
}

/** All problems in one line, for an error text. */
export function problemsText(problems: readonly Problem[]): string {
  return problems.map(({ path, message }) => `${path === '' ? '/' : path} ${message}`).join('; ');
}

/** Bounds the error for a hostile document. */
const problemsMax = 100;

/**
 * A TypeBox definition as a Standard Schema, for events and commands. A `description` on a string becomes part of
 * its problem's message.
 *
 * @example
 * import { compileSchema, defineEvent, Type } from 'millrace/contracts';
 *
 * const opened = defineEvent('account.opened.v1', compileSchema(Type.Object({ owner: Type.String() })));
 */
export function compileSchema<D extends TSchema>(definition: D): Schema<Static<D>> {
  type T = Static<D>;
  const compiled = Compile(definition);
  const known = knownFields(definition);
  // TypeBox matches every field name of a closed object with a pattern; a set is three times as fast.
  const open = known === undefined ? compiled : Compile(opened(definition));
  const check = (value: unknown): value is T => open.Check(value) && hasOnly(value, known);
  const problems = (value: unknown): readonly Problem[] =>
    check(value)
      ? []
      : explain(
          allErrors(() => compiled.Errors(value)[1]),
          definition,
        );
  const toJsonSchema = (): Record<string, unknown> => ({ ...(definition as object) });
  return {
    definition,
    check,
    problems,
    '~standard': {
      version: 1,
      vendor: 'millrace',
      jsonSchema: { input: toJsonSchema, output: toJsonSchema },
      validate: (value) =>
        check(value)
          ? { value }
          : {
              issues: problems(value).map(({ path, message }) => ({
                message,
                path: pathSegments(path),
              })),
            },
    },
  };
}

/** The fields of an object that allows no others. */
function knownFields(definition: TSchema): ReadonlySet<string> | undefined {
  const { additionalProperties, properties } = definition as Record<string, unknown>;
  return additionalProperties === false && isRecord(properties)
    ? new Set(Object.keys(properties))
    : undefined;
}

function opened(definition: TSchema): TSchema {
  const { additionalProperties: _closed, ...open } = definition as Record<string, unknown>;
  return open;
}

function hasOnly(value: unknown, known: ReadonlySet<string> | undefined): boolean {
  if (known === undefined) return true;
  for (const field in value as object) if (!known.has(field)) return false;
  return true;
}

type CompiledErrors = ReturnType<ReturnType<typeof Compile>['Errors']>[1];

/** TypeBox stops at eight errors by a global setting: raise it only for this call. */
function allErrors(collect: () => CompiledErrors): CompiledErrors {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: problemsMax });
  try {
    return collect();
  } finally {
    Settings.Set({ maxErrors });
  }
}

function explain(errors: CompiledErrors, definition: TSchema): Problem[] {
  const found = new Map<string, string>();
  for (const error of errors) {
    const { instancePath, keyword } = error;
    if (keyword === 'boolean') continue; // Repeats additionalProperties.
    if (keyword === 'required') {
      for (const name of error.params.requiredProperties)
        add(`${instancePath}/${name}`, 'is missing');
    } else if (keyword === 'additionalProperties') {
      for (const name of error.params.additionalProperties) {
        add(`${instancePath}/${escapeSegment(name)}`, 'is not a known field');
      }
    } else {
      add(instancePath, describe(definition, instancePath) ?? error.message);
    }
    if (found.size >= problemsMax) break;
  }
  return [...found].map(([path, message]) => ({ path, message }));

  function add(path: string, message: string): void {
    // The first problem of a path is the most specific: 'must be string' before 'must match …'.
    if (!found.has(path)) found.set(path, message);
  }
}

function describe(definition: TSchema, path: string): string | undefined {
  let node: unknown = definition;
  for (const segment of pathSegments(path)) {
    if (!isRecord(node) || !isRecord(node['properties'])) return undefined;
    node = node['properties'][segment];
  }
  const description = isRecord(node) ? node['description'] : undefined;
  return typeof description === 'string' && !/^(?:Default|For example)\b/.test(description)
    ? `must be ${inSentence(description)}`
    : undefined;
}

/** `A UUID` and `The cursor.` as parts of a sentence. */
function inSentence(description: string): string {
  const article = /^(?:An?|The) /.exec(description)?.[0] ?? '';
  return article.toLowerCase() + description.slice(article.length).replace(/\.$/, '');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function escapeSegment(segment: string): string {
  return segment.replaceAll('~', '~0').replaceAll('/', '~1');
}

function pathSegments(path: string): string[] {
  if (path === '') return [];
  return path
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}
