// Helpers of the projections.

import type { ProjectedEvent } from 'millrace/projections';

/** The event of a definition, as a projection receives it. */
export type Projected<Definition extends { parse(payload: unknown): unknown }> = ProjectedEvent<
  ReturnType<Definition['parse']>
>;

/** A projection step that changes an existing document; an event of a missing document has no effect. */
export function update<Document extends object, Event>(
  change: (document: Document, event: Event) => Document,
): (document: Document | null, event: Event) => Document | null {
  return (document, event) => (document === null ? null : change(document, event));
}
