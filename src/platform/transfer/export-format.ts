// The format of exported events: NDJSON, one JSON object per line, in the order of the store.
//
//   {"type":…,"eventId":…,…,"payload":…,"stream":…,"revision":…,"position":…,"recordedAt":…}
//   …
//   {"checkpoint":"00000000000003e8"}
//
// A line is a recorded event as the store reads it: the whole envelope and where it was recorded.
// Stream metadata (type `$metadata`, stream `$$<stream>`) and tombstones (`$streamDeleted`) are
// events as well. The last line says up to which position the export is complete; without it, the
// export was interrupted, and goes on after the last whole line.
//
// Payloads are in the clear, those about people too: keep the file as you keep the database. What
// retention hides and no scavenge has removed yet is part of the export.

import { Type } from '../../contracts/type.ts';
import type { DomainEventEnvelope } from '../../contracts/envelope.ts';
import { compileSchema } from '../../contracts/schema.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parsePosition, type Position } from '../../store/position.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';

/** What a line says; an event keeps its revision in the source, of which the target may differ. */
export type ExportLine =
  | { readonly kind: 'event'; readonly event: ExportedEvent }
  | { readonly kind: 'checkpoint'; readonly position: Position };

export interface ExportedEvent {
  /** Counted from 1. */
  readonly line: number;
  readonly stream: string;
  readonly revision: number;
  readonly envelope: DomainEventEnvelope;
}

const text = Type.String({ minLength: 1, description: 'a text' });

/** Looser than the envelope: a store that takes open names must come back as it was. */
const eventSchema = compileSchema(
  Type.Object({
    stream: text,
    revision: Type.Integer({ minimum: 0, description: 'a whole number from 0' }),
    type: text,
    eventId: text,
    occurredAt: text,
    correlationId: text,
    tenant: Type.String(),
    aggregate: Type.Object({ bc: Type.String(), type: Type.String(), id: Type.String() }),
    payload: Type.Unknown(),
  }),
);

export function eventLine(event: RecordedEvent): string {
  return `${JSON.stringify(event)}\n`;
}

export function checkpointLine(position: Position): string {
  return `${JSON.stringify({ checkpoint: position })}\n`;
}

export function parseExportLine(json: string, line: number): ExportLine {
  const value = parseJson(json, line);
  if (isRecord(value) && typeof value['checkpoint'] === 'string') {
    return { kind: 'checkpoint', position: parsePosition(value['checkpoint']) };
  }
  if (!eventSchema.check(value)) {
    const problems = eventSchema.problems(value);
    const shown = problems.map(({ path, message }) => `${path === '' ? '/' : path} ${message}`);
    throw lineInvalid(line, `is not a recorded event: ${shown.join('; ')}`, { problems });
  }
  const { stream, revision, position: _, recordedAt: __, ...envelope } = value as RecordedEvent;
  return { kind: 'event', event: { line, stream, revision, envelope } };
}

/** Where an export that ends with this line goes on. */
export function positionOfLine(json: string): Position | undefined {
  try {
    const value: unknown = JSON.parse(json);
    const position = isRecord(value) ? (value['checkpoint'] ?? value['position']) : undefined;
    return typeof position === 'string' ? parsePosition(position) : undefined;
  } catch {
    return undefined;
  }
}

export function lineInvalid(
  line: number,
  reason: string,
  details: Readonly<Record<string, unknown>> = {},
): MillraceError {
  return new MillraceError('IMPORT_INVALID', `line ${line} ${reason}`, {
    details: { line, reason, ...details },
  });
}

function parseJson(json: string, line: number): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // Without the cause: it quotes the line, and payloads stay out of messages.
    throw lineInvalid(line, 'is not JSON');
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
