// From the events of a sample item to the document that queries read.

import type { DomainEventEnvelope } from 'millrace/contracts';
import { sampleItemCreated, sampleItemUpdated } from './sample-item-events.ts';

export interface SampleItemDocument {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly updatedAt: string;
  /** The revision of the stream that the document stands at. */
  readonly revision: number;
}

/** The document after an event, pure, so that a rebuild gives the same documents again. */
export function projectSampleItem(
  document: SampleItemDocument | undefined,
  event: DomainEventEnvelope,
  revision: number,
): SampleItemDocument | undefined {
  // Events are delivered at least once: one that the document has seen changes nothing.
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
