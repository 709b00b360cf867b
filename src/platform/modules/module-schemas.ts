// The JSON Schemas of the events, commands and tasks that modules define, for programs in other languages and for the
// comparison with former versions.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { createModuleContext, type PlatformModule } from './platform-module.ts';

export interface ModuleSchema {
  readonly kind: 'event' | 'command' | 'task';
  readonly type: string;
  /** `events/banking.account.v1/account.opened.v1`. */
  readonly path: string;
  /** A string: why the schema library cannot express it. */
  readonly schema: Readonly<Record<string, unknown>> | string;
}

export interface ModuleSchemas {
  readonly schemas: readonly ModuleSchema[];
  /** The paths of older events, which are upcast when they are read. */
  readonly olderEvents: ReadonlySet<string>;
}

/** Commands and tasks are described as they are sent, events as they are stored. */
export function moduleSchemas(modules: readonly PlatformModule[]): ModuleSchemas {
  const { context } = createModuleContext();
  const aggregates = modules.flatMap((each) => each.aggregates ?? []);
  const tasks = modules.flatMap(({ tasks: own = [] }) =>
    typeof own === 'function' ? own(context) : own,
  );
  return {
    schemas: [
      ...aggregates.flatMap(({ category, events, commands }) => [
        ...events.map(({ type, schema }) => described({ kind: 'event', type, category, schema })),
        ...commands.map(({ type, schema }) =>
          described({ kind: 'command', type, category, schema }),
        ),
      ]),
      ...tasks.flatMap(({ name, schema }) =>
        schema === undefined ? [] : [described({ kind: 'task', type: name, schema })],
      ),
    ],
    olderEvents: new Set(
      aggregates.flatMap(({ category, olderEvents }) =>
        olderEvents.map((type) => `events/${category}/${type}`),
      ),
    ),
  };
}

interface Definition {
  readonly kind: ModuleSchema['kind'];
  readonly type: string;
  readonly category?: string;
  readonly schema: StandardSchemaV1;
}

function described({ kind, type, category, schema }: Definition): ModuleSchema {
  const path = [`${kind}s`, category, type].filter((part) => part !== undefined).join('/');
  const converter = (schema['~standard'] as Partial<StandardJSONSchemaV1.Props>).jsonSchema;
  if (converter === undefined) {
    return { kind, type, path, schema: 'its schema library does not generate JSON Schema' };
  }
  try {
    const target = { target: 'draft-2020-12' } as const;
    const generated = kind === 'event' ? converter.output(target) : converter.input(target);
    const { $schema, $id, title, ...rest } = kind === 'event' ? open(generated) : generated;
    return {
      kind,
      type,
      path,
      schema: {
        $schema: $schema ?? 'https://json-schema.org/draft/2020-12/schema',
        $id: $id ?? `urn:millrace:${path.replaceAll('/', ':')}`,
        title: title ?? type,
        ...rest,
      },
    };
  } catch (error) {
    return { kind, type, path, schema: error instanceof Error ? error.message : String(error) };
  }
}

/** Readers must accept the fields that later versions of the application add. */
function open(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const text = JSON.stringify(schema, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const { additionalProperties, ...rest } = value as Readonly<Record<string, unknown>>;
    return additionalProperties === false ? rest : value;
  });
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
}
