// Projects the events of a sample item into the document that queries read.

import type { DomainEventEnvelope } from 'millrace/contracts';
import { sampleItemCreated, sampleItemUpdated } from './sample-item-events.ts';

export interface SampleItemDocument {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly updatedAt: string;
  /** The stream revision of the last applied event. */
  readonly revision: number;
}

/** Pure, so that a rebuild creates the same documents. */
export function projectSampleItem(
  document: SampleItemDocument | undefined,
  event: DomainEventEnvelope,
  revision: number,
): SampleItemDocument | undefined {
  // Events are delivered at least once: skip an event that was already applied.
  if (document !== undefined && document.revision >= revision) return document;
  const definition = [sampleItemCreated, sampleItemUpdated].find(({ type }) => type === event.type);
  if (definition === undefined) return document;
  const { name } = definition.parse(event.payload);
  return {
    id: event.aggregate.id,
    tenant: event.tenant,
    name,
    updatedAt: event.occurredAt,
    revision,
  };
}
