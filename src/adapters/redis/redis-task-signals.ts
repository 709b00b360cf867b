// Signals as the bus stores them: the same envelope in the same streams, so that its consumers read them.
// Everything in one comes from checked jobs: it is not checked once more.

import type { EngineEntry } from '../../bus/bus-engine.ts';
import { isoOf, type TaskSignal } from '../../tasks/task-signal.ts';
import type { TypePlace } from './redis-task-space.ts';

export function signalText(signal: TaskSignal, nowMs: number): string {
  const { id, subject, tenant, correlationId, causationId, trace, payload } = signal;
  return JSON.stringify({
    version: 1,
    id,
    subject,
    time: isoOf(nowMs),
    tenant,
    correlationId,
    causationId,
    traceparent: trace?.traceparent,
    tracestate: trace?.tracestate,
    payload,
  });
}

export function signalEntry(signal: TaskSignal, nowMs: number): EngineEntry {
  const { subject, id } = signal;
  return { subject, id, data: Buffer.from(signalText(signal, nowMs)) };
}

/** Numbers of the streams in scripts. */
export const streamNumbers = { queue: 1, terminal: 2, progress: 3 } as const;
export type StreamNumber = (typeof streamNumbers)[keyof typeof streamNumbers];

/** Undefined: of no job of this type. */
export function streamNumber(place: TypePlace, subject: string): StreamNumber | undefined {
  if (subject === place.queue.subject) return streamNumbers.queue;
  if (subject === place.terminal.subject) return streamNumbers.terminal;
  return subject === place.progress.subject ? streamNumbers.progress : undefined;
}

/** What tells one from the others of its job and stream: the fence, or a part of its id. */
export function placeInJob(number: StreamNumber, id: string): string {
  return number === streamNumbers.progress ? id.slice(2) : id.slice(id.lastIndexOf(':') + 1);
}
