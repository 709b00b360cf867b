// Which events a command is about, for those that read across streams.

import type { EventFilter } from '../store/event-filter.ts';

export const filterOptions = {
  category: {
    type: 'string',
    value: 'category',
    summary: 'only this one, such as banking.currency.v1',
  },
  tenant: { type: 'string', value: 'key', summary: 'only this tenant' },
  type: {
    type: 'string',
    multiple: true,
    value: 'event-type',
    summary: 'only this one, any number of times',
  },
  'type-prefix': {
    type: 'string',
    multiple: true,
    value: 'text',
    summary: 'only types that begin so, any number of times',
  },
  'stream-prefix': {
    type: 'string',
    multiple: true,
    value: 'text',
    summary: 'only streams that begin so, any number of times',
  },
} as const;

interface FilterValues {
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
  readonly type?: readonly string[] | undefined;
  readonly 'type-prefix'?: readonly string[] | undefined;
  readonly 'stream-prefix'?: readonly string[] | undefined;
}

/** Undefined: everything. */
export function filterOf(values: FilterValues): EventFilter | undefined {
  const {
    category,
    tenant,
    type,
    'type-prefix': typePrefix,
    'stream-prefix': streamPrefix,
  } = values;
  const filter: EventFilter = {
    ...(category === undefined ? {} : { category }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(type === undefined ? {} : { types: type }),
    ...(typePrefix === undefined ? {} : { typePrefixes: typePrefix }),
    ...(streamPrefix === undefined ? {} : { streamPrefixes: streamPrefix }),
  };
  return Object.keys(filter).length === 0 ? undefined : filter;
}
