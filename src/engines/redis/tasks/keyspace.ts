// The keys of tasks. All keys of a type have its queue stream as hash tag and so share its cluster slot: one script
// changes jobs, their order and their queue signals together.

import { createSubjects } from '../../../contracts/subjects.ts';
import type { BusKeyspace } from '../bus/keyspace.ts';

interface TaskStream {
  readonly subject: string;
  readonly key: string;
  readonly mark: string;
}

export interface TypeKeys {
  readonly type: string;
  /** HASH of settings of the type, and the prefix of all its other keys. */
  readonly base: string;
  /**
   * A key that never exists. Every script declares it together with `base`, which exists. While a slot moves to another
   * node, Redis rejects commands if only some of their keys exist, so that no script sees half of a type.
   */
  readonly never: string;
  readonly queue: TaskStream;
  readonly progress: TaskStream;
  readonly terminal: TaskStream;
  readonly workersGroup: string;
}

export interface TaskKeyspace {
  readonly bus: BusKeyspace;
  /** SET of types that have or had jobs. */
  readonly types: string;
  /** HASH from worker to the time when its lease expires. */
  readonly workers: string;
  /** HASH from worker to its description. */
  readonly about: string;
  /** The channel that wakes workers when new jobs may be available; it has no terminal or progress signals. */
  readonly workerChannel: string;
  readonly typeKeys: (type: string) => TypeKeys;
}

export function createTaskKeyspace(bus: BusKeyspace, root?: string): TaskKeyspace {
  const subjects = createSubjects<string>({ root });
  const known = new Map<string, TypeKeys>();
  const side = `${bus.prefix}millrace.tasks:{tasks}`;

  function streamOf(subject: string): TaskStream {
    const key = bus.streamKey(subject);
    return { subject, key, mark: bus.mark(key) };
  }

  function typeKeys(type: string): TypeKeys {
    const existing = known.get(type);
    if (existing !== undefined) return existing;
    const { queue, progress, terminal } = subjects.tasks.type(type);
    const queueStream = streamOf(queue);
    const base = `${bus.prefix}millrace.task:{${queueStream.key}}`;
    const keys: TypeKeys = {
      type,
      base,
      never: `${base}:never`,
      queue: queueStream,
      progress: streamOf(progress),
      terminal: streamOf(terminal),
      workersGroup: `${type}-workers`,
    };
    known.set(type, keys);
    return keys;
  }

  return {
    bus,
    types: `${side}:types`,
    workers: `${side}:workers`,
    about: `${side}:about`,
    workerChannel: `${bus.channel}:tasks`,
    typeKeys,
  };
}

/** The id of a job without its type: `email-send.0199…` → `0199…`. */
export function suffixOf(id: string): string {
  return id.slice(id.indexOf('.') + 1);
}
