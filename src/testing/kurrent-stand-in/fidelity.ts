// The switches of the stand-in for a real EventStoreDB, and their presets. Each switch is one behaviour that was measured
// on a real server and that our own KurrentDB-protocol server does not have.

export interface Fidelity {
  /** The version that the server reports. */
  readonly version: string;
  /** Positions are byte offsets: they start high and have gaps of 100 to 2,000. */
  readonly bytePositions: boolean;
  /** Refuses reads and subscriptions from a position inside a record, except in the scavenged part of the log. */
  readonly refusesForeignPositions: boolean;
  /** A filtered subscription drops its first event if no record is at its start position. */
  readonly skipsFirstEvent: boolean;
  /** A filtered subscription sends checkpoints right after its confirmation, at its start position and at 2^64 − 1. */
  readonly earlyCheckpoints: boolean;
  /** `caughtUp`, `fellBehind` and checkpoints have no time, and the first two no position. */
  readonly plainProgress: boolean;
  /** Ids of appends with `any` and `stream_exists` are remembered in memory only, until the next start. */
  readonly forgetsIds: boolean;
  /** An append equal to one that is not indexed yet gets no answer. */
  readonly dropsEqualAppends: boolean;
  /** Known ids in another order, with `any`, get no answer. */
  readonly dropsReorderedAppends: boolean;
  /** The deletion of a stream without events is a conflict. */
  readonly refusesAbsentDelete: boolean;
  /** The deletion of a deleted stream sets `$tb` to the next revision, which restores the stream. */
  readonly revivesByDelete: boolean;
  /** A deletion drops all other metadata; an append to a deleted stream writes a `$metadata` event. */
  readonly writesDeletedMetadata: boolean;
  /** A repeated append on a deleted stream succeeds without a position. */
  readonly hidesLatePositions: boolean;
  /** Writes links (`$ce-`, `$et-`, `$streams`, `$category-`) and `$stats` between the events of clients. */
  readonly systemProjections: boolean;
  /** The number of calls after each start that are answered with "Server Is Not Ready". */
  readonly notReadyCalls: number;
  /** With 2 or more, clients find the nodes by gossip, and a follower refuses calls that require the leader. */
  readonly nodes: number;
  /** Clients prefer followers; gossip sends their native connection (reads) to the last one, and all else to the first. */
  readonly splitsConnections: boolean;
}

const common: Fidelity = {
  version: '24.10.4',
  bytePositions: true,
  refusesForeignPositions: false,
  skipsFirstEvent: false,
  earlyCheckpoints: false,
  plainProgress: false,
  forgetsIds: true,
  dropsEqualAppends: true,
  dropsReorderedAppends: false,
  refusesAbsentDelete: true,
  revivesByDelete: true,
  writesDeletedMetadata: true,
  hidesLatePositions: true,
  systemProjections: true,
  notReadyCalls: 0,
  nodes: 1,
  splitsConnections: false,
};

const v23: Fidelity = {
  ...common,
  version: '23.10.6',
  refusesForeignPositions: true,
  skipsFirstEvent: true,
  plainProgress: true,
  dropsReorderedAppends: true,
};

export const presets = {
  '23.10': v23,
  '24.10': { ...common, earlyCheckpoints: true },
  cluster: { ...v23, nodes: 3, splitsConnections: true },
} as const satisfies Readonly<Record<string, Fidelity>>;

export type Preset = keyof typeof presets;
