// The events of a sample item, each with the schema of its payload.

import { defineEvent, type EventOf } from 'millrace/contracts';

export interface SampleItemDetails {
  readonly name: string;
}

/** A hand-written Standard Schema; zod, valibot or arktype schemas work, too. */
export const sampleItemDetails = {
  '~standard': {
    version: 1,
    vendor: 'sample-context',
    types: undefined as
      | { readonly input: SampleItemDetails; readonly output: SampleItemDetails }
      | undefined,
    validate: (value: unknown) =>
      isDetails(value)
        ? { value: { name: value.name } }
        : { issues: [{ message: 'must be a non-empty string', path: ['name'] }] },
  },
} as const;

export const sampleItemCreated = defineEvent('sample-item.created.v1', sampleItemDetails);
export const sampleItemUpdated = defineEvent('sample-item.updated.v1', sampleItemDetails);

export type SampleItemEvent = EventOf<typeof sampleItemCreated> | EventOf<typeof sampleItemUpdated>;

function isDetails(value: unknown): value is SampleItemDetails {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    typeof value.name === 'string' &&
    value.name.trim() !== ''
  );
}
