// Which versions there are of a read model, how far each is, and which one queries ask. It stands in the
// event store's own database, wherever the documents are.

import type { Position } from '../store/position.ts';

export type VersionStatus =
  /** It has not been at the head of the events yet. */
  | 'building'
  | 'ready'
  /** Its documents are being removed. */
  | 'retiring'
  | 'retired';

export interface VersionKey {
  /** `banking.currency`. */
  readonly family: string;
  readonly version: number;
}

export interface ReadModelVersion extends VersionKey {
  /** The projection's name: what its checkpoint is kept under. */
  readonly projection: string;
  readonly status: VersionStatus;
  /** Queries ask this one; at most one of a family. */
  readonly active: boolean;
  /** What the head was when it began to be built. */
  readonly target: Position | undefined;
  readonly changedAtMs: number;
}

export interface ReadModelVersions {
  /**
   * Makes the version known; one that is known stays as it is. The first of a family is asked at
   * once: there is nothing else to ask.
   */
  declare(
    version: VersionKey & Pick<ReadModelVersion, 'projection' | 'target'>,
    nowMs: number,
  ): Promise<ReadModelVersion>;
  /** Of one family, or of all; in order. */
  list(family?: string): Promise<readonly ReadModelVersion[]>;
  /** False, and nothing is changed, unless it is in one of these states. */
  setStatus(
    key: VersionKey,
    change: { readonly from: readonly VersionStatus[]; readonly to: VersionStatus },
    nowMs: number,
  ): Promise<boolean>;
  /** From one moment to the next all queries ask this one. False unless it is `ready`. */
  activate(key: VersionKey, nowMs: number): Promise<boolean>;
}
