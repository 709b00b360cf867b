// Jobs with the label `dataSubject`: payload, step results, events, result, errors and history are encrypted with the key of the
// person before an engine stores them. A job of a forgotten person has none of them, and ends as failed.

import { override } from '../foundation/override.ts';
import { parseStored } from '../foundation/parse-json.ts';
import { isForgotten, isSealed, subjectForgotten, subjectHeader } from '../store/erasure.ts';
import type { PersonalData } from '../store/personal-data.ts';
import { invalid } from './rules/check-task.ts';
import type { EnqueueEntry, TaskChange, TaskEngine } from './task-engine.ts';
import { subjectOfJob, type StoredTask, type TaskFields } from './task-job.ts';
import { damagedField } from './task-record.ts';

/** The member of a job's field that contains the encrypted members. */
const sealedMember = '$personal';

/** Whether the job's person was forgotten: its payload is not readable. */
export function isErased(task: StoredTask): boolean {
  if (subjectOfJob(task.head) === undefined) return false;
  return isForgotten(parseStored(task.fields['payload'] ?? 'null'));
}

export interface PersonalJobs {
  /** The engine with plain fields for its callers. */
  readonly engine: TaskEngine;
  /** Encrypts the fields of new jobs; rejects with `SUBJECT_FORGOTTEN`. */
  seal(entries: readonly EnqueueEntry[]): Promise<readonly EnqueueEntry[]>;
}

interface PersonalFields {
  readonly subject: string;
  readonly id: string;
  readonly fields: Readonly<Record<string, string | null>>;
}

interface SealedJob {
  readonly fields: PersonalFields['fields'];
  readonly hasForgotten: boolean;
}

export function personalJobs(
  engine: TaskEngine,
  personalData: PersonalData | undefined,
): PersonalJobs {
  function keys(): PersonalData {
    if (personalData !== undefined) return personalData;
    throw invalid(
      `labels.${subjectHeader}`,
      'needs the keys of an event store: pass the option personalData to createTasks',
    );
  }

  /** The fields of each job as stored; of a forgotten person, without the personal members. */
  async function sealAll(jobs: readonly PersonalFields[]): Promise<readonly SealedJob[]> {
    const parts = jobs.map(({ fields }) => Object.entries(fields).map(splitField));
    const values = jobs.flatMap(({ subject, id }, at) =>
      (parts[at] ?? []).flatMap(({ personal }) =>
        personal === undefined ? [] : [{ subject, id, json: JSON.stringify(personal) }],
      ),
    );
    const sealed = (await keys().seal(values)).values();
    return parts.map((fields) => {
      let hasForgotten = false;
      const stored: Record<string, string | null> = {};
      for (const { name, text, rest, personal } of fields) {
        stored[name] = text;
        if (personal === undefined) continue;
        const secret: unknown = JSON.parse(sealed.next().value ?? 'null');
        hasForgotten ||= isForgotten(secret);
        stored[name] = JSON.stringify({ ...rest, [sealedMember]: secret });
      }
      return { fields: stored, hasForgotten };
    });
  }

  async function unsealAll<Job extends StoredTask>(
    jobs: readonly (Job | undefined)[],
  ): Promise<readonly (Job | undefined)[]> {
    const found = jobs.map((job) => (job === undefined ? [] : sealedFields(job)));
    const values = found.flat();
    if (values.length === 0) return jobs;
    const opened = (await keys().unseal(values)).values();
    return jobs.map((job, at) => {
      if (job === undefined) return job;
      const fields: Record<string, string> = { ...job.fields };
      for (const { name, rest } of found[at] ?? []) {
        const personal: unknown = opened.next().value;
        if (isSealed(personal)) fields[damagedField] = `encrypted ${name}`;
        else fields[name] = joinField(name, rest, personal);
      }
      return { ...job, fields };
    });
  }

  async function unsealPresent(jobs: readonly StoredTask[]): Promise<readonly StoredTask[]> {
    const opened = await unsealAll(jobs);
    return opened.filter((job) => job !== undefined);
  }

  async function sealChanges(changes: readonly TaskChange[]): Promise<readonly TaskChange[]> {
    if (changes.every(({ subject }) => subject === undefined)) return changes;
    const jobs = changes.flatMap(({ subject, id, fields }) =>
      subject === undefined ? [] : [{ subject, id, fields }],
    );
    const sealed = (await sealAll(jobs)).values();
    return changes.map((change) => {
      if (change.subject === undefined) return change;
      return { ...change, fields: sealed.next().value?.fields ?? {} };
    });
  }

  return {
    engine: override(engine, {
      async changeAndClaim(changes, claim, nowMs) {
        const stored = await sealChanges(changes);
        const { outcomes, claimed } = await engine.changeAndClaim(stored, claim, nowMs);
        return { outcomes, claimed: await unsealPresent(claimed) };
      },
      claim: async (request, wait) => unsealPresent(await engine.claim(request, wait)),
      get: async (refs) => unsealAll(await engine.get(refs)),
      async list(filter, page) {
        const { tasks, cursor } = await engine.list(filter, page);
        return { tasks: await unsealPresent(tasks), cursor };
      },
      overdue: async (request) => unsealPresent(await engine.overdue(request)),
      dueScheduled: async (request) => unsealPresent(await engine.dueScheduled(request)),
    }),
    async seal(entries) {
      const subjects = entries.map(({ head }) => subjectOfJob(head));
      const jobs = entries.flatMap(({ head, fields }, at) => {
        const subject = subjects[at];
        return subject === undefined ? [] : [{ subject, id: head.id, fields }];
      });
      if (jobs.length === 0) return entries;
      const sealed = (await sealAll(jobs)).values();
      return entries.map((entry, at) => {
        const subject = subjects[at];
        if (subject === undefined) return entry;
        const { fields = {}, hasForgotten = false } = sealed.next().value ?? {};
        if (hasForgotten) throw subjectForgotten(subject);
        return { ...entry, fields: fields as TaskFields };
      });
    },
  };
}

/** The members of a field that may contain personal data. Others, such as times and states, decide what happens next. */
function personalMembers(name: string): readonly string[] {
  if (name === 'run') return ['progress', 'result', 'error', 'ending', 'history'];
  if (name === 'cancel') return ['reason'];
  if (name.startsWith('step:')) return ['result', 'error'];
  return name.startsWith('event:') ? ['payload'] : [];
}

interface SplitField {
  readonly name: string;
  /** As given. */
  readonly text: string | null;
  readonly rest: Readonly<Record<string, unknown>>;
  /** Undefined: the field contains no personal data. */
  readonly personal: unknown;
}

function splitField([name, text]: readonly [string, string | null]): SplitField {
  if (text === null) return { name, text, rest: {}, personal: undefined };
  if (name === 'payload') {
    return { name, text, rest: {}, personal: { payload: JSON.parse(text) as unknown } };
  }
  const members = personalMembers(name);
  if (members.length === 0) return { name, text, rest: {}, personal: undefined };
  const entries = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return {
    name,
    text,
    rest: Object.fromEntries(entries.filter(([member]) => !members.includes(member))),
    personal: Object.fromEntries(entries.filter(([member]) => members.includes(member))),
  };
}

interface SealedField {
  readonly name: string;
  readonly subject: string;
  readonly id: string;
  readonly rest: Readonly<Record<string, unknown>>;
  readonly value: unknown;
}

function sealedFields({ head, fields }: StoredTask): readonly SealedField[] {
  const subject = subjectOfJob(head);
  if (subject === undefined) return [];
  return Object.entries(fields).flatMap(([name, text]) => {
    if (name === 'info') return [];
    const { [sealedMember]: value, ...rest } = Object(parseStored(text)) as Record<string, unknown>;
    return value === undefined ? [] : [{ name, subject, id: head.id, rest, value }];
  });
}

/** The field as callers know it. */
function joinField(
  name: string,
  rest: Readonly<Record<string, unknown>>,
  personal: unknown,
): string {
  const members = isForgotten(personal) ? {} : (personal as Readonly<Record<string, unknown>>);
  if (name === 'payload') {
    return JSON.stringify(isForgotten(personal) ? personal : members['payload']);
  }
  const history = name === 'run' ? { history: [] } : {};
  return JSON.stringify({ ...history, ...rest, ...members });
}
