// Signals: messages on the bus about a job. The job's record is the truth; a lost signal is created again from the
// record, with the same id.

import { subjects as defaultSubjects, type Subjects } from '../contracts/subjects.ts';
import { idFromKey } from '../foundation/ids.ts';
import { subjectOfJob, type TaskHead, type TaskRef } from './task-job.ts';
import type { TaskInfo } from './task-record.ts';

type TaskStream = 'queue' | 'progress' | 'terminal';

/** One message of the bus; an engine stores it in the bus's envelope and stream. */
export interface TaskSignal extends Required<SignalOrigin> {
  /** The full subject: `gbe.tasks.email-send.queue`. */
  readonly subject: string;
  /** Derived from the fact, so that a repeated signal is a duplicate. */
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly tenant: string | undefined;
}

/** The part of a job's origin that signals carry. */
type SignalOrigin = Pick<TaskInfo, 'causationId' | 'correlationId' | 'trace'>;

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

/** Signals are not encrypted: those of a job about a person have no texts of its handler. */
function withoutTexts(head: TaskHead): Readonly<Record<string, undefined>> {
  return subjectOfJob(head) === undefined ? {} : { error: undefined, message: undefined };
}

let lastMs = Number.NaN;
let lastIso = '';

/** Cached, because the signals of a batch have the same time. */
export function isoOf(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastIso = new Date(ms).toISOString();
  }
  return lastIso;
}

/** `subjects`: with the root of the bus; default root `gbe`. */
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
        // A claim increases the fence, so each time in the queue has its own id.
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
          error: subjectOfJob(head) === undefined ? error : undefined,
        },
      }),
    progressed: (head, origin, what) =>
      signal(head, origin, {
        subject: subjectOf(head, 'progress'),
        id: `p:${idFromKey(`${head.id}|${head.fence}|${JSON.stringify(what)}`)}`,
        payload: { taskId: head.id, type: head.type, ...what, ...withoutTexts(head) },
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
