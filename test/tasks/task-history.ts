// Checks the notes of killed workers against the streams and records afterwards.
// Pure, because the kill tests prove no more than this check.

/** Written by a worker to its own file and synced. `atNs` is from one clock for all processes. */
export interface WorkerNote {
  readonly kind: 'ran' | 'finished';
  readonly id: string;
  readonly step: string;
  readonly atNs: string;
}

export interface TaskOutcome {
  readonly id: string;
  readonly key: string | undefined;
  readonly state: string;
}

export interface TaskRunHistory {
  /** For each key, every id that an enqueue returned. */
  readonly enqueued: readonly { readonly key: string; readonly id: string }[];
  readonly notes: readonly WorkerNote[];
  /** The ids in the terminal stream, one for each time a job ended. */
  readonly terminals: readonly string[];
  /** The stored jobs. */
  readonly jobs: readonly TaskOutcome[];
  readonly steps: readonly string[];
}

export type TaskRule =
  | 'lost'
  | 'not-ended'
  | 'ended-twice'
  | 'terminal-not-published'
  | 'step-ran-again'
  | 'step-missing'
  | 'stored-twice'
  | 'phantom';

export interface TaskViolation {
  readonly rule: TaskRule;
  readonly message: string;
}

export function checkTaskHistory(run: TaskRunHistory): readonly TaskViolation[] {
  const found: TaskViolation[] = [];
  const report = (rule: TaskRule, message: string): void => void found.push({ rule, message });
  const jobs = new Map(run.jobs.map((job) => [job.id, job]));
  const idOfKey = new Map<string, string>();
  for (const { key, id } of run.enqueued) {
    const known = idOfKey.get(key);
    if (known !== undefined && known !== id) report('stored-twice', `${key}: ${known} and ${id}`);
    idOfKey.set(key, id);
    if (!jobs.has(id)) report('lost', `${key}: ${id}`);
  }
  const byKey = Map.groupBy(run.jobs, ({ key, id }) => key ?? id);
  for (const [key, all] of byKey) {
    if (all.length > 1) report('stored-twice', `${key}: ${all.length} records`);
    if (!idOfKey.has(key)) report('phantom', `${key} was never enqueued`);
  }
  const ends = Map.groupBy(run.terminals, (id) => id);
  for (const { id, state } of run.jobs) {
    if (state !== 'completed') report('not-ended', `${id} is ${state}`);
    const count = ends.get(id)?.length ?? 0;
    if (count === 0) report('terminal-not-published', id);
    if (count > 1) report('ended-twice', `${id}: ${count} times`);
  }
  const firstEnd = new Map<string, bigint>();
  const ran = new Set<string>();
  for (const { kind, id, step, atNs } of run.notes) {
    const stepKey = `${id} ${step}`;
    if (!jobs.has(id)) report('phantom', `${stepKey} ran`);
    if (kind === 'ran') ran.add(stepKey);
    const at = BigInt(atNs);
    const before = firstEnd.get(stepKey);
    if (kind === 'finished' && (before === undefined || at < before)) firstEnd.set(stepKey, at);
  }
  for (const { kind, id, step, atNs } of run.notes) {
    const ended = firstEnd.get(`${id} ${step}`);
    if (kind === 'ran' && ended !== undefined && BigInt(atNs) > ended) {
      report('step-ran-again', `${id} ${step}`);
    }
  }
  for (const { id, state } of run.jobs) {
    if (state !== 'completed') continue;
    for (const step of run.steps)
      if (!ran.has(`${id} ${step}`)) report('step-missing', `${id} ${step}`);
  }
  return found;
}
