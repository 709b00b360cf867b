// One job: what it waits for, its steps, its result or error, and what happened to it.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Ban, RotateCw } from 'lucide-react';
import type { Task } from '../api.gen.ts';
import { call, type ResponseOf } from '../lib/api.ts';
import { durationText } from '../lib/format.ts';
import { poll } from '../lib/list.ts';
import { taskCommands } from '../lib/shell-commands.ts';
import { Actions, type Action } from '../ui/actions.tsx';
import { CopyAs } from '../ui/copy-as.tsx';
import { ExplainLink } from '../ui/explain-link.tsx';
import { JsonView } from '../ui/json-view.tsx';
import {
  Badge,
  CopyButton,
  cx,
  Fact,
  Facts,
  linkStyle,
  Part,
  Time,
  TraceLink,
} from '../ui/parts.tsx';
import { DetailSheet } from '../ui/sheet.tsx';

/** A bulk action: the server does not retry it. */
const bulkType = 'millrace-bulk';

type Step = Task['steps'][number];
type Timeline = ResponseOf<'GET /api/v1/jobs/{id}'>['timeline'];

const tones = {
  scheduled: 'neutral',
  queued: 'neutral',
  waiting: 'neutral',
  running: 'accent',
  completed: 'good',
  failed: 'bad',
  cancelled: 'warn',
} as const;

export function JobState({ job: { state, progress, cancelAt, endedAt } }: { readonly job: Task }) {
  return (
    <span className="inline-flex flex-wrap items-center gap-1.5">
      <Badge tone={tones[state]}>{state}</Badge>
      {progress !== undefined && state === 'running' ? (
        <span className="text-2xs text-soft">{Math.round(progress.percent)} %</span>
      ) : null}
      {cancelAt !== undefined && endedAt === undefined ? (
        <Badge tone="warn">cancelling</Badge>
      ) : null}
    </span>
  );
}

/** The number of a job that has failed is that of its next attempt. */
export function attemptText({ attempt, failures, state }: Task): string {
  if (failures === 0) return String(attempt);
  return state === 'failed' ? `${failures} failed` : `${attempt} (${failures} failed)`;
}

export function JobSheet({
  id = '',
  onClose,
}: {
  readonly id: string | undefined;
  readonly onClose: () => void;
}) {
  const query = useQuery({
    queryKey: ['job', id],
    queryFn: ({ signal }) => call('GET /api/v1/jobs/{id}', { params: { id }, signal }),
    enabled: id !== '',
    refetchInterval: poll,
  });
  return (
    <DetailSheet
      id={id}
      title={query.data?.task.type ?? 'Job'}
      query={query}
      onClose={onClose}
      gone="No job has this id. Jobs are deleted when the retention of their type ends."
    >
      {({ task, timeline }) => (
        <>
          <Actions actions={actionsOf(task)} refresh={['job', 'jobs', 'overview', 'failures']} />
          {task.error === undefined ? null : (
            <p className="mono rounded-md bg-bad-wash px-3 py-2 text-xs break-words text-bad">
              {task.error.code === undefined ? '' : `${task.error.code}: `}
              {task.error.message}
            </p>
          )}
          <div className="flex flex-wrap items-center gap-2">
            <ExplainLink id={task.correlationId ?? task.id} node={`task ${task.id}`} />
            <CopyAs commands={taskCommands(task.id)} />
          </div>
          <JobFacts job={task} />
          <Steps steps={task.steps} />
          {task.result === undefined ? null : (
            <Part title="Result">
              <JsonView value={task.result} label="the result" />
            </Part>
          )}
          <Part title="Payload">
            <JsonView value={task.payload} label="the payload" />
          </Part>
          <History timeline={timeline} />
        </>
      )}
    </DetailSheet>
  );
}

function JobFacts({ job }: { readonly job: Task }) {
  const { id, tenant, worker, parentId, correlationId, labels } = job;
  return (
    <Facts>
      <Fact name="State">
        <JobState job={job} />
        <span className="text-soft">{waitText(job.waitsFor)}</span>
      </Fact>
      <Fact name="Id">
        <span className="mono break-all">{id}</span>
        <CopyButton text={id} label="Copy the id" />
      </Fact>
      <Fact name="Attempt">{attemptText(job)}</Fact>
      <Fact name="Tenant">{tenant ?? '–'}</Fact>
      <Fact name="Enqueued">
        <Time at={job.enqueuedAt} />
      </Fact>
      {job.dueAt === undefined ? null : (
        <Fact name="Due">
          <Time at={job.dueAt} />
        </Fact>
      )}
      {job.endedAt === undefined ? null : (
        <Fact name="Ended">
          <Time at={job.endedAt} />
        </Fact>
      )}
      {worker === undefined ? null : (
        <Fact name="Worker">
          <span className="mono break-all">{worker}</span>
        </Fact>
      )}
      {parentId === undefined ? null : (
        <Fact name="Parent">
          <Link to="/jobs" search={{ open: parentId }} className={cx('mono break-all', linkStyle)}>
            {parentId}
          </Link>
        </Fact>
      )}
      {correlationId === undefined ? null : (
        <Fact name="Trace">
          <TraceLink id={correlationId} />
        </Fact>
      )}
      {Object.keys(labels).length === 0 ? null : (
        <Fact name="Labels">
          {Object.entries(labels).map(([name, value]) => (
            <Badge key={name}>
              {name}={value}
            </Badge>
          ))}
        </Fact>
      )}
    </Facts>
  );
}

/** `waitsFor` has several shapes; the page shows what it knows of them. */
function waitText(waits: unknown): string {
  if (typeof waits !== 'object' || waits === null || !('kind' in waits)) return '';
  const { kind, step } = waits as { readonly kind: string; readonly step?: string };
  const until = 'untilMs' in waits ? new Date(Number(waits.untilMs)).toISOString() : undefined;
  const place = step === undefined ? '' : ` in the step ${step}`;
  return `waits for ${kind}${place}${until === undefined ? '' : ` until ${until}`}`;
}

function Steps({ steps }: { readonly steps: readonly Step[] }) {
  if (steps.length === 0) return null;
  return (
    <Part title={`Steps ${steps.length}`}>
      <ol className="divide-y divide-line overflow-hidden rounded-md border border-line">
        {steps.map((step) => (
          <li key={step.name} className="flex flex-col gap-1 px-3 py-2 text-xs">
            <div className="flex flex-wrap items-center gap-2">
              <Badge tone={tones[step.state]}>{step.state}</Badge>
              <span className="mono font-medium break-all">{step.name}</span>
              {step.kind === 'step' ? null : <span className="text-soft">{step.kind}</span>}
              <span className="ml-auto text-soft">
                {step.attempts > 1 ? `${step.attempts} attempts · ` : ''}
                {step.endedAt === undefined
                  ? ''
                  : durationText(Date.parse(step.endedAt) - Date.parse(step.startedAt))}
              </span>
            </div>
            {step.error === undefined ? null : (
              <p className="mono break-words text-bad">{step.error.message}</p>
            )}
            {step.result === undefined ? null : (
              <JsonView value={step.result} label={`the result of ${step.name}`} />
            )}
          </li>
        ))}
      </ol>
    </Part>
  );
}

function History({ timeline }: { readonly timeline: Timeline }) {
  if (timeline.length === 0) return null;
  return (
    <Part title="History">
      <ol className="flex flex-col gap-1 text-xs">
        {timeline.map(({ at, what, step, text }, index) => (
          <li key={index} className="flex flex-wrap gap-x-3">
            <Time at={at} />
            <span>
              {what}
              {step === undefined ? '' : ` ${step}`}
            </span>
            {text === undefined ? null : (
              <span className="min-w-0 break-words text-soft">{text}</span>
            )}
          </li>
        ))}
      </ol>
    </Part>
  );
}

function actionsOf({ id, type, endedAt, state }: Task): readonly Action[] {
  if (endedAt !== undefined) {
    if (type === bulkType) return [];
    return [
      {
        route: 'POST /admin/jobs/{id}/retry',
        ...(state === 'completed'
          ? {
              label: 'Run again',
              confirm:
                'The job has completed. It is queued once more, with the same payload; completed steps do not run again.',
            }
          : { label: 'Retry' }),
        icon: RotateCw,
        isMain: state === 'failed',
        run: async () => {
          const route = 'POST /admin/jobs/{id}/retry';
          const { changed } = await call(route, { params: { id }, body: {} });
          return changed
            ? 'Retry requested. Completed steps do not run again.'
            : 'Another operator was faster: the job runs again.';
        },
      },
    ];
  }
  return [
    {
      route: 'POST /admin/jobs/{id}/cancel',
      label: 'Cancel the job',
      icon: Ban,
      confirm:
        'A waiting job ends at once. A running job is notified, undoes its completed steps if it can, and is terminated after its deadline.',
      run: async () => {
        const route = 'POST /admin/jobs/{id}/cancel';
        const { changed } = await call(route, { params: { id }, body: {} });
        return changed ? 'Cancellation requested.' : 'The job had already ended.';
      },
    },
  ];
}
