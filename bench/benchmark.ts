// The parts of a benchmark: cases, in each of which Millrace and its peers do the same work.

/** The name of Millrace among the subjects; ratios compare every other subject with it. */
export const ours = 'millrace';

/**
 * A file in `bench/` exports one of these as `benchmark` and has a line in `benchmarks.ts`.
 */
export interface Benchmark {
  readonly name: string;
  /** Packages of `bench/package.json`, shown with their versions; `importPeer` loads them. */
  readonly peers: readonly string[];
  /** The benchmark's `import.meta.url`: memory cases load their subject from there in a separate process. */
  readonly url: string;
  readonly cases: (context: BenchmarkContext) => readonly Case[] | Promise<readonly Case[]>;
  /** Seconds per subject in a full run, including setup. Default: 5. */
  readonly secondsPerSubject?: number | undefined;
}

export interface BenchmarkContext {
  /** Less time, and smaller inputs where their size is not fixed. */
  readonly quick: boolean;
  /** Aborts when the run is interrupted; pass it to every wait. */
  readonly signal: AbortSignal;
  /** Closes the shared resources after all cases; the last one registered runs first. */
  readonly defer: (release: () => void | Promise<void>) => void;
}

/**
 * - `throughput`: operations per second; more is better.
 * - `latency`: the values that `run` passes to `record`, in milliseconds; less is better.
 * - `memory`: the resident memory in MiB after `run`, one process per subject; less is better.
 */
type Measure = 'throughput' | 'latency' | 'memory';

export interface Case {
  readonly name: string;
  readonly measure: Measure;
  readonly subjects: readonly Subject[];
  /** Fixes `n`; by default it is chosen so that a timed slice is long enough to be exact. */
  readonly batch?: number | undefined;
  /** The minimum number of counted rounds, after one that is not counted: for work longer than a slice. */
  readonly roundsMin?: number | undefined;
  readonly goals?: readonly Goal[] | undefined;
}

export interface Subject {
  readonly name: string;
  /** Opens the resources of the subject; all subjects of a case stay open while they take turns. */
  readonly setup: () => Runner | Promise<Runner>;
  /** A smaller batch for a slow subject; the table shows it, and rates are per operation. */
  readonly batch?: number | undefined;
}

export interface Runner {
  /** Does the work `n` times. The result is kept, so that the work cannot be optimised away. */
  readonly run: (n: number, record: (ms: number) => void) => unknown;
  /** Runs untimed before each run, for example to fill a queue. */
  readonly prepare?: (n: number) => void | Promise<void>;
  /** Runs untimed after each run, to stop work that would continue during the turns of other subjects. */
  readonly finish?: () => void | Promise<void>;
  readonly teardown?: () => void | Promise<void>;
  /** Memory of another process that does the work; by default the memory of this process. */
  readonly rssMiB?: () => number | Promise<number>;
}

/** Reported as met or not met; it never fails the run. */
export type Goal = RatioGoal | LatencyGoal;

interface RatioGoal {
  /** The `vs` of a ratio: a subject, or `<subject> (p99)` in latency cases. */
  readonly vs: string;
  readonly ratioMin: number;
}

/** An absolute limit instead of a comparison with other subjects. */
type LatencyGoal = { readonly p50MsMax: number } | { readonly p99MsMax: number };

/** The result of one round for one subject. */
export type Round =
  | { readonly perSecond: number }
  | { readonly p50Ms: number; readonly p99Ms: number }
  | { readonly rssMiB: number };

export interface SubjectRounds {
  readonly subject: string;
  /** Set if it differs from the batch of the case. */
  readonly batch?: number | undefined;
  readonly rounds: readonly Round[];
}

export interface CaseRounds {
  readonly case: string;
  readonly goals: readonly Goal[];
  readonly subjects: readonly SubjectRounds[];
}
