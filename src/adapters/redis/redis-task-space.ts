// Where the Redis engine of tasks keeps what. Everything of a type lies in the slot of its queue stream,
// whose key is the hash tag of all its keys, so that a script changes jobs, their order and their signals
// in one step on a cluster, too.

import { createSubjects } from '../../contracts/subjects.ts';
import type { BusSpace } from './redis-bus-space.ts';

interface TaskStreamPlace {
  readonly subject: string;
  readonly key: string;
  readonly mark: string;
}

export interface TypePlace {
  readonly type: string;
  /** HASH of what is known of the type, and what all its other keys begin with. */
  readonly base: string;
  /**
   * Never there. Named by every script beside `base`, which is: while a slot moves to another node, Redis
   * refuses whoever names both what is there and what is not, and so no script sees half of a type.
   */
  readonly never: string;
  readonly queue: TaskStreamPlace;
  readonly progress: TaskStreamPlace;
  readonly terminal: TaskStreamPlace;
  readonly workersGroup: string;
}

export interface TaskSpace {
  readonly bus: BusSpace;
  /** SET of types that have, or had, jobs. */
  readonly types: string;
  /** HASH from a worker to when its time is over, and what it says of itself. */
  readonly workers: string;
  readonly about: string;
  /** Before the id of a hand that somebody holds out. */
  readonly hands: string;
  readonly place: (type: string) => TypePlace;
}

export function createTaskSpace(bus: BusSpace, root?: string): TaskSpace {
  const subjects = createSubjects<string>(root === undefined ? {} : { root });
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
    const made: TypePlace = {
      type,
      base,
      never: `${base}:never`,
      queue: queuePlace,
      progress: streamPlace(progress),
      terminal: streamPlace(terminal),
      workersGroup: `${type}-workers`,
    };
    places.set(type, made);
    return made;
  }

  return {
    bus,
    types: `${side}:types`,
    workers: `${side}:workers`,
    about: `${side}:about`,
    hands: `${side}:hand:`,
    place,
  };
}

/** Without its type: `email-send.0199…` → `0199…`. */
export function suffixOf(id: string): string {
  return id.slice(id.indexOf('.') + 1);
}
