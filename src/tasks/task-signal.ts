// What the streams are told of a job. Signals only: what is true stands in the job's record, and a signal
// that was lost is made from it again, with the same id.

import { subjects as defaultSubjects, type Subjects } from '../contracts/subjects.ts';
import { idFromKey } from '../foundation/ids.ts';
import type { TraceContext } from '../foundation/observer.ts';
import type { TaskHead, TaskRef } from './task-job.ts';

type TaskStream = 'queue' | 'progress' | 'terminal';

/** One message of the bus; an engine puts it into the bus's envelope and streams. */
export interface TaskSignal {
  /** Full: `gbe.tasks.email-send.queue`. */
  readonly subject: string;
  /** The same for the same fact: a second one of it is stored nowhere. */
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly tenant: string | undefined;
  readonly correlationId: string | undefined;
  readonly causationId: string | undefined;
  readonly trace: TraceContext | undefined;
}

/** Of a job, as far as signals carry them. */
interface SignalOrigin {
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly trace?: TraceContext | undefined;
}

export interface SignalMaker {
  readonly queued: (head: TaskHead, origin: SignalOrigin) => TaskSignal;
  readonly ended: (
    head: TaskHead,
    origin: SignalOrigin,
    about: { readonly error?: string | undefined },
  ) => TaskSignal;
  readonly progressed: (
    head: TaskHead,
    origin: SignalOrigin,
    what: { readonly kind: string } & Readonly<Record<string, unknown>>,
  ) => TaskSignal;
  readonly control: (
    action: 'sweep' | 'rebalance' | 'shutdown',
    id: string,
    payload: Readonly<Record<string, unknown>>,
  ) => TaskSignal;
}

let lastMs = Number.NaN;
let lastIso = '';

/** Of a batch all have the same. */
export function isoOf(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastIso = new Date(ms).toISOString();
  }
  return lastIso;
}

/** Root as the bus of the house has it; `gbe` unless told. */
export function createSignals(subjects: Subjects<string> = defaultSubjects): SignalMaker {
  const known = new Map<string, Readonly<Record<TaskStream, string>>>();
  function subjectOf({ type }: TaskRef, stream: TaskStream): string {
    let streams = known.get(type);
    if (streams === undefined) {
      streams = subjects.tasks.type(type);
      known.set(type, streams);
    }
    return streams[stream];
  }
  const signal = (
    head: TaskHead,
    origin: SignalOrigin,
    rest: Pick<TaskSignal, 'subject' | 'id' | 'payload'>,
  ): TaskSignal => ({
    ...rest,
    tenant: head.tenant === '' ? undefined : head.tenant,
    correlationId: origin.correlationId,
    causationId: origin.causationId,
    trace: origin.trace,
  });

  return {
    queued: (head, origin) =>
      signal(head, origin, {
        subject: subjectOf(head, 'queue'),
        // A claim makes the next fence: each time that it waits for a worker has an id of its own.
        id: `q:${head.id}:${head.fence}`,
        payload: { taskId: head.id, type: head.type, priority: head.priority },
      }),
    ended: (head, origin, { error }) =>
      signal(head, origin, {
        subject: subjectOf(head, 'terminal'),
        id: `t:${head.id}:${head.fence}`,
        payload: {
          taskId: head.id,
          type: head.type,
          state: head.state,
          failures: head.failures,
          endedAt: isoOf(head.endedAtMs),
          ...(error === undefined ? {} : { error }),
        },
      }),
    progressed: (head, origin, what) =>
      signal(head, origin, {
        subject: subjectOf(head, 'progress'),
        id: `p:${idFromKey(`${head.id}|${head.fence}|${JSON.stringify(what)}`)}`,
        payload: { taskId: head.id, type: head.type, ...what },
      }),
    control: (action, id, payload) => ({
      subject: subjects.tasks.control[action],
      id,
      payload,
      tenant: undefined,
      correlationId: undefined,
      causationId: undefined,
      trace: undefined,
    }),
  };
}
