// The format of exported events: NDJSON, one JSON object per line, in the order of the store.
//
//   {"type":…,"eventId":…,…,"payload":…,"stream":…,"revision":…,"position":…,"recordedAt":…}
//   …
//   {"checkpoint":"00000000000003e8"}
//
// A line is a recorded event: the envelope and its position in the store. Stream metadata (type `$metadata`, stream
// `$$<stream>`) and tombstones (`$streamDeleted`) are events, too. The last line contains the position up to which
// the export is complete; without it, the export was interrupted, and continues after the last complete line.
//
// Payloads are not encrypted, including personal data: protect the file like the database. Events that retention
// hides but no scavenge has removed are exported.

import { Type } from '../../contracts/type.ts';
import type { DomainEventEnvelope } from '../../contracts/envelope.ts';
import { compileSchema, problemsText } from '../../contracts/schema.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parsePosition, type Position } from '../../store/position.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';

/** A parsed line; the revision is that of the source, and may differ in the target. */
export type ExportLine =
  | { readonly kind: 'event'; readonly event: ExportedEvent }
  | { readonly kind: 'checkpoint'; readonly position: Position };

export interface ExportedEvent {
  /** The line number, from 1. */
  readonly line: number;
  readonly stream: string;
  readonly revision: number;
  readonly envelope: DomainEventEnvelope;
}

const text = Type.String({ minLength: 1, description: 'a non-empty string' });

/** More permissive than the envelope, because a store with open names must be restorable. */
const eventSchema = compileSchema(
  Type.Object({
    stream: text,
    revision: Type.Integer({ minimum: 0, description: 'a non-negative integer' }),
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
    throw lineInvalid(line, `is not a recorded event: ${problemsText(problems)}`, { problems });
  }
  const { stream, revision, position: _, recordedAt: __, ...envelope } = value as RecordedEvent;
  return { kind: 'event', event: { line, stream, revision, envelope } };
}

/** The position after an export that ends with this line. */
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
    // Omit the cause: it quotes the line, and messages must not contain payloads.
    throw lineInvalid(line, 'is not JSON');
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
