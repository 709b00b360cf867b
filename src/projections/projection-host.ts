// What running a projection needs beside the events, and where it is when nobody says otherwise: in the
// store's own database.

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
  /** Where the documents are. Default: the store's own database. */
  readonly readModels?: ReadModelStore | undefined;
  /** Where the checkpoints are. Default: the store's own database. */
  readonly storage?: SubscriptionStorage | undefined;
  /** Where it is known which version is asked. Default: the store's own database. */
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
    readModels: present('read models', options.readModels ?? store.readModels),
    storage: present('checkpoints', options.storage ?? store.subscriptions),
    versions: present('versions of read models', options.versions ?? store.readModelVersions),
    clock,
    observer,
  };
}

export function familyOf({ bc, aggregate }: Pick<ModelKey, 'bc' | 'aggregate'>): string {
  return `${bc}.${aggregate}`;
}

function present<Part>(what: string, part: Part | undefined): Part {
  if (part !== undefined) return part;
  throw new MillraceError(
    'NOT_SUPPORTED',
    `this store has no room for ${what}: pass another engine's`,
    { details: { what } },
  );
}
