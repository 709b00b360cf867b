// The parts that a projection needs in addition to the events. By default they are in the store's own database.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import type { EventStore } from '../store/event-store.ts';
import type {
  SubscriptionHost,
  SubscriptionStorage,
} from '../subscriptions/subscription-storage.ts';
import type { ModelKey, ReadModelHost, ReadModelStore } from './read-model-store.ts';
import type { ReadModelVersions } from './read-model-versions.ts';

export type ProjectionStore = EventStore & Partial<SubscriptionHost> & Partial<ReadModelHost>;

export interface HostOptions {
  /** Store of the documents. Default: the store's own database. */
  readonly readModels?: ReadModelStore | undefined;
  /** Store of the checkpoints. Default: the store's own database. */
  readonly storage?: SubscriptionStorage | undefined;
  /** Store of the read model versions. Default: the store's own database. */
  readonly versions?: ReadModelVersions | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

export interface ProjectionHost {
  readonly readModels: ReadModelStore;
  readonly storage: SubscriptionStorage;
  readonly versions: ReadModelVersions;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function hostOf(store: ProjectionStore, options: HostOptions): ProjectionHost {
  const { clock = systemClock, observer = silentObserver } = options;
  return {
    readModels: required('read models', options.readModels ?? store.readModels),
    storage: required('checkpoints', options.storage ?? store.subscriptions),
    versions: required('read model versions', options.versions ?? store.readModelVersions),
    clock,
    observer,
  };
}

export function familyOf({ bc, aggregate }: Pick<ModelKey, 'bc' | 'aggregate'>): string {
  return `${bc}.${aggregate}`;
}

function required<Part>(what: string, part: Part | undefined): Part {
  if (part !== undefined) return part;
  throw new MillraceError(
    'NOT_SUPPORTED',
    `this store cannot store ${what}: pass those of another engine`,
    { details: { what } },
  );
}
