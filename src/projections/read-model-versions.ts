// The port for the versions of read models: their status, and which version queries use. The versions are stored in the
// event store's database, even if the documents are elsewhere.

import type { Position } from '../store/position.ts';

export type VersionStatus =
  /** The version has not caught up with the head yet. */
  | 'building'
  | 'ready'
  /** The documents of the version were lost and are being restored; queries are rejected. */
  | 'rebuilding'
  /** The documents of the version are being removed. */
  | 'retiring'
  | 'retired';

export interface VersionKey {
  /** Name of the read model without its version, such as `banking.currency`. */
  readonly family: string;
  readonly version: number;
}

export interface ReadModelVersion extends VersionKey {
  /** The name of the projection, which is the key of its checkpoint. */
  readonly projection: string;
  readonly status: VersionStatus;
  /** Queries use this version; at most one version per family is active. */
  readonly active: boolean;
  /** The head of the events when the build started. */
  readonly target: Position | undefined;
  readonly changedAtMs: number;
}

export interface ReadModelVersions {
  /** Registers a version unless it exists. The first version of a family becomes active immediately. */
  declare(
    version: VersionKey & Pick<ReadModelVersion, 'projection' | 'target'>,
    nowMs: number,
  ): Promise<ReadModelVersion>;
  /** The versions of one family or of all, sorted. */
  list(family?: string): Promise<readonly ReadModelVersion[]>;
  /** Returns false, without a change, unless the status is one of `from`. */
  setStatus(
    key: VersionKey,
    change: { readonly from: readonly VersionStatus[]; readonly to: VersionStatus },
    nowMs: number,
  ): Promise<boolean>;
  /** Atomically makes this version active. Returns false unless it is `ready`. */
  activate(key: VersionKey, nowMs: number): Promise<boolean>;
}

export function familyOf({
  bc,
  aggregate,
}: {
  readonly bc: string;
  readonly aggregate: string;
}): string {
  return `${bc}.${aggregate}`;
}
