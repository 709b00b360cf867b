// What a benchmark is made of: cases, in each of which we and our peers do the same work.

/** Our own name among the subjects: ratios compare everybody else with it. */
export const ours = 'millrace';

/**
 * A file of `bench/` exports one of these as `benchmark` and has its line in `benchmarks.ts`.
 */
export interface Benchmark {
  readonly name: string;
  /** Packages of `bench/package.json`, shown with their versions; `importPeer` loads them. */
  readonly peers: readonly string[];
  /** Its `import.meta.url`, for memory cases: a process of its own loads the subject from there. */
  readonly url: string;
  readonly cases: (context: BenchmarkContext) => readonly Case[] | Promise<readonly Case[]>;
  /** Of a full run, setting up and filling included. Default: 5. */
  readonly secondsPerSubject?: number;
}

export interface BenchmarkContext {
  /** Less time, and so smaller inputs where their size is a choice. */
  readonly quick: boolean;
  /** Fires when somebody interrupts; hand it to whatever waits. */
  readonly signal: AbortSignal;
  /** Runs when all cases are over, last come first served: what the cases share is closed here. */
  readonly defer: (release: () => void | Promise<void>) => void;
}

/**
 * - `throughput`: how often per second `run` does its work; more is better.
 * - `latency`: what `run` hands to `record`, in milliseconds; less is better.
 * - `memory`: the resident memory in MiB behind `run`, one process per subject; less is better.
 */
type Measure = 'throughput' | 'latency' | 'memory';

export interface Case {
  readonly name: string;
  readonly measure: Measure;
  readonly subjects: readonly Subject[];
  /** Fixes `n`; otherwise it is chosen so that one timed slice lasts long enough to be exact. */
  readonly batch?: number;
  readonly goals?: readonly Goal[];
}

export interface Subject {
  readonly name: string;
  /** Opens what the subject needs; all subjects of a case are open while they take turns. */
  readonly setup: () => Runner | Promise<Runner>;
}

export interface Runner {
  /** Does the work `n` times. What it returns is kept, so that no work can be optimised away. */
  readonly run: (n: number, record: (ms: number) => void) => unknown;
  /** Untimed, before each run: fills a queue, empties a table. */
  readonly prepare?: (n: number) => void | Promise<void>;
  /** Untimed, after each run: ends what would go on while the others take their turns. */
  readonly finish?: () => void | Promise<void>;
  readonly teardown?: () => void | Promise<void>;
  /** For memory cases whose work happens in another process; absent: the memory of this one. */
  readonly rssMiB?: () => number | Promise<number>;
}

/** A wish, reported as met or not; it never fails the run. */
export type Goal = RatioGoal | LatencyGoal;

interface RatioGoal {
  /** The `vs` of a ratio: the subject, or `<subject> (p99)` in latency cases. */
  readonly vs: string;
  readonly ratioMin: number;
}

/** Where not the others, but those who wait, say how much is too much. */
type LatencyGoal = { readonly p50MsMax: number } | { readonly p99MsMax: number };

/** What one round found for one subject. */
export type Round =
  | { readonly perSecond: number }
  | { readonly p50Ms: number; readonly p99Ms: number }
  | { readonly rssMiB: number };

export interface SubjectRounds {
  readonly subject: string;
  readonly rounds: readonly Round[];
}

export interface CaseRounds {
  readonly case: string;
  readonly goals: readonly Goal[];
  readonly subjects: readonly SubjectRounds[];
}
