// The keys of tasks. All keys of a type have its queue stream as hash tag and so share its cluster slot: one script
// changes jobs, their order and their queue signals together.

import { createSubjects } from '../../../contracts/subjects.ts';
import type { BusKeyspace } from '../bus/keyspace.ts';

interface TaskStreamPlace {
  readonly subject: string;
  readonly key: string;
  readonly mark: string;
}

export interface TypePlace {
  readonly type: string;
  /** HASH of settings of the type, and the prefix of all its other keys. */
  readonly base: string;
  /**
   * A key that never exists. Every script declares it together with `base`, which exists. While a slot moves to another
   * node, Redis rejects commands if only some of their keys exist, so that no script sees half of a type.
   */
  readonly never: string;
  readonly queue: TaskStreamPlace;
  readonly progress: TaskStreamPlace;
  readonly terminal: TaskStreamPlace;
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
  /** Prefix of hand-off offers; the id of the process follows. */
  readonly offers: string;
  /** The channel that wakes workers when new jobs may be available; it has no terminal or progress signals. */
  readonly workerChannel: string;
  readonly place: (type: string) => TypePlace;
}

export function createTaskKeyspace(bus: BusKeyspace, root?: string): TaskKeyspace {
  const subjects = createSubjects<string>({ root });
  const places = new Map<string, TypePlace>();
  const side = `${bus.prefix}millrace.tasks:{tasks}`;

  function streamPlace(subject: string): TaskStreamPlace {
    const key = bus.streamKey(subject);
    return { subject, key, mark: bus.mark(key) };
  }

  function place(type: string): TypePlace {
    const known = places.get(type);
    if (known !== undefined) return known;
    const { queue, progress, terminal } = subjects.tasks.type(type);
    const queuePlace = streamPlace(queue);
    const base = `${bus.prefix}millrace.task:{${queuePlace.key}}`;
    const created: TypePlace = {
      type,
      base,
      never: `${base}:never`,
      queue: queuePlace,
      progress: streamPlace(progress),
      terminal: streamPlace(terminal),
      workersGroup: `${type}-workers`,
    };
    places.set(type, created);
    return created;
  }

  return {
    bus,
    types: `${side}:types`,
    workers: `${side}:workers`,
    about: `${side}:about`,
    offers: `${side}:hand:`,
    workerChannel: `${bus.channel}:tasks`,
    place,
  };
}

/** The id of a job without its type: `email-send.0199…` → `0199…`. */
export function suffixOf(id: string): string {
  return id.slice(id.indexOf('.') + 1);
}
