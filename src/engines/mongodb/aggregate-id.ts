// The field `aggregateId` of an event: the id of its aggregate, as in the architecture document. Earlier versions
// stored the stream name in it, and had no field `stream`.

interface Aggregate {
  readonly type?: unknown;
  readonly id?: unknown;
}

/** The id that the event names; else the end of the stream name; else the whole name. */
export function aggregateIdOf(stream: string, aggregate: Aggregate | null | undefined): string {
  const id = aggregate?.id;
  if (typeof id === 'string' && id !== '') return id;
  return /^[^-]+-[^-]+-(.+)$/s.exec(stream)?.[1] ?? stream;
}

export interface FormerEvent {
  readonly aggregateId: string;
  readonly stream?: string;
  readonly metadata?: { readonly aggregate?: unknown };
}

/** An event of this version or of an earlier one, with both fields. */
export function withStream<Event extends FormerEvent>(
  document: Event,
): Event & { readonly stream: string } {
  const { stream, aggregateId: name, metadata } = document;
  if (stream !== undefined) return { ...document, stream };
  const aggregateId = aggregateIdOf(name, metadata?.aggregate as Aggregate | undefined);
  return { ...document, stream: name, aggregateId };
}
