// Handles one job: loads the request and posts it. After a crash the next attempt continues from the stored state: not begun
// (post it), begun (search the channel first), or done (do nothing).

import type { SlackClient } from 'millrace/destinations/slack';
import { slackAddressing, type NewCommand } from 'millrace/contracts';
import { createIds, hasCode, type Attributes, type Clock } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import type { JobHandler, JobOutcome, KeyStore } from 'millrace/work';
import { paceLine, type Pace } from './channel-pace.ts';
import { afterLookup, afterPost, type AttemptRules, type Step } from './decide-outcome.ts';
import { readSendJob } from './dispatcher.ts';
import {
  beginAttempt,
  deferAttempt,
  recordFailed,
  recordSent,
  type RequestContent,
} from './message-request-events.ts';
import { messageRequest, tagsOf, type RequestState } from './message-request.ts';
import { prepareRequest, type Prepared } from './request-config.ts';
import type { SecretBox } from './secret-box.ts';

interface WorkerRules {
  readonly lockMs: number;
  readonly settleMs: number;
  readonly retryMs: number;
  readonly attemptsMax: number;
  readonly channelIntervalMs: number;
  readonly workspaceIntervalMs: number;
  /** Timeout of one call to Slack. */
  readonly timeoutMs: number;
}

export interface WorkerOptions {
  readonly context: Pick<ModuleContext, 'clock' | 'documents' | 'load' | 'observer' | 'send'>;
  readonly keys: KeyStore;
  readonly slack: SlackClient;
  readonly secrets: SecretBox | undefined;
  readonly pace: Pace;
  readonly rules: WorkerRules;
  readonly random?: () => number;
}

interface JobRun {
  readonly tenant: string;
  readonly id: string;
  readonly lock: SendLock;
  readonly signal: AbortSignal;
  /** Fields of every log line; the codes of the request are added when it is loaded. */
  readonly tags: Record<string, Attributes[string]>;
}

type Ready = Extract<Prepared, { readonly kind: 'ready' }>;

/** Delay after an error of the database, the keys or the queue. */
const troubleDelayMs = 5_000;

export function createSendHandler(options: WorkerOptions): JobHandler {
  const { context, keys, slack, secrets, pace, rules, random = Math.random } = options;
  const { clock, observer, load } = context;
  const ids = createIds();

  async function attempt(run: JobRun): Promise<JobOutcome> {
    const { tenant, lock, tags } = run;
    const { state, revision } = await load(messageRequest, run);
    Object.assign(tags, tagsOf(state));
    const { content, status } = state;
    if (content === undefined || status !== 'queued') return undefined;
    const waitMs = Math.max(state.dueAtMs, quietUntilMs(state)) - clock.now();
    if (waitMs > 0) return { delayMs: waitMs };
    const prepared = await prepareRequest(context, tenant, content);
    if (prepared.kind === 'failed') return fail(run, state, prepared);
    const token = tokenOf(tenant, content.workspaceCode, prepared);
    if (token === undefined) {
      const reason = 'The token of the workspace cannot be decrypted with the configured keys.';
      return fail(run, state, { code: 'secret-unreadable', reason });
    }
    const delayed = await wait(tenant, content, prepared);
    if (delayed !== undefined) return delayed;
    const command = beginAttempt({ fence: lock.fence, channelId: prepared.channelId });
    try {
      await record(run, state, command, revision);
    } catch (error) {
      // The request changed while it was prepared: load it again.
      if (hasCode(error, 'VERSION_CONFLICT') || hasCode(error, 'COMMAND_REJECTED')) {
        return { delayMs: 0 };
      }
      throw error;
    }
    const step = await perform(run, state, { prepared, content, token });
    return close(run, state, step);
  }

  /** Searches the channels that may already have the message, and posts it if none has. */
  async function perform(
    run: JobRun,
    state: RequestState,
    {
      prepared,
      content,
      token,
    }: { readonly prepared: Ready; readonly content: RequestContent; readonly token: string },
  ): Promise<Step> {
    const { lock, signal } = run;
    const { threadTs } = content;
    const looking = { token, signal };
    // Not aborted by the shutdown: the outcome would be unknown.
    const posting = { token, signal: new AbortController().signal };
    const attemptRules: AttemptRules = {
      attempt: state.attempts + 1,
      attemptsMax: prepared.app?.attemptsMax ?? rules.attemptsMax,
      settleMs: rules.settleMs,
      retryMs: rules.retryMs,
      random: random(),
    };
    if (state.mayBePosted) {
      const sinceMs = state.firstBegunAtMs ?? state.queuedAtMs;
      for (const channel of state.channels) {
        const found = await slack.find(
          { channel, threadTs, id: metadataId(run), sinceMs },
          looking,
        );
        const known = afterLookup(found, attemptRules);
        observer.log?.info({ ...run.tags, found: found.kind }, 'channel searched');
        if (known !== undefined) return known;
      }
    }
    // The call must end before the lock expires.
    if (!(await lock.holdsFor(rules.timeoutMs * 2))) {
      return {
        kind: 'later',
        code: 'lock-lost',
        delayMs: 1_000,
        mayBePosted: false,
        counts: false,
      };
    }
    const posted = await slack.post(
      {
        ...prepared.message,
        channel: prepared.channelId,
        id: metadataId(run),
        threadTs,
      },
      posting,
    );
    observer.log?.debug({ ...run.tags, kind: posted.kind }, 'Slack called');
    return afterPost(posted, attemptRules);
  }

  /** Records the outcome of the attempt. */
  async function close(run: JobRun, state: RequestState, step: Step): Promise<JobOutcome> {
    const { tenant, lock } = run;
    const { fence } = lock;
    if (step.kind === 'sent') {
      await record(run, state, recordSent({ ts: step.ts, channelId: step.channelId }));
      observer.count?.('slack_requests_sent_total', { tenant });
      observer.log?.info(run.tags, 'request sent');
      return undefined;
    }
    if (step.kind === 'failed') return fail(run, state, step);
    const { code, mayBePosted, counts, delayMs } = step;
    await record(run, state, deferAttempt({ fence, code, mayBePosted, counts }));
    const workspaceCode = state.content?.workspaceCode ?? '';
    if (step.pauseMs !== undefined) await pace.pause(paceLine(tenant, workspaceCode), step.pauseMs);
    observer.count?.('slack_requests_deferred_total', { tenant, code });
    observer.log?.warn({ ...run.tags, code, delayMs, mayBePosted }, 'request deferred');
    return { delayMs };
  }

  async function fail(
    run: JobRun,
    state: RequestState,
    why: {
      readonly code: string;
      readonly reason?: string | undefined;
      readonly mayBePosted?: boolean | undefined;
    },
  ): Promise<undefined> {
    const { code, reason, mayBePosted = state.mayBePosted } = why;
    const { fence } = run.lock;
    await record(run, state, recordFailed({ fence, code, mayBePosted, reason }));
    observer.count?.('slack_requests_failed_total', { tenant: run.tenant, code });
    observer.log?.warn({ ...run.tags, code }, 'request failed');
  }

  function record(
    { tenant, id, signal }: JobRun,
    { correlationId }: RequestState,
    command: NewCommand,
    expected?: number,
  ): Promise<unknown> {
    const flow = correlationId === '' ? {} : { correlationId };
    const seen = expected === undefined ? {} : { expected };
    // Outcomes are recorded even during the shutdown.
    const cancel = expected === undefined ? {} : { signal };
    return context.send({ tenant, id, command, ...flow, ...seen, ...cancel });
  }

  async function wait(
    tenant: string,
    { workspaceCode }: RequestContent,
    { app, channelId }: Ready,
  ): Promise<JobOutcome> {
    const lines = [
      [paceLine(tenant, workspaceCode), rules.workspaceIntervalMs],
      [
        paceLine(tenant, workspaceCode, channelId),
        app?.channelIntervalMs ?? rules.channelIntervalMs,
      ],
    ] as const;
    for (const [line, intervalMs] of lines) {
      const reservation = await pace.take(line, intervalMs);
      if ('delayMs' in reservation) return reservation;
      if (reservation.waitMs > 0) await clock.sleep(reservation.waitMs);
    }
    return undefined;
  }

  function tokenOf(tenant: string, code: string, { workspace }: Ready): string | undefined {
    try {
      return secrets?.open(workspace.token, { tenant, kind: 'workspace', code });
    } catch (error) {
      if (hasCode(error, 'CONFIG_INVALID')) return undefined;
      throw error;
    }
  }

  /** Until then Slack may still be processing the previous attempt. */
  function quietUntilMs({ mayBePosted, lastBegunAtMs = 0 }: RequestState): number {
    return mayBePosted ? lastBegunAtMs + rules.settleMs : 0;
  }

  return async (job, { signal }) => {
    const pointer = readSendJob(job.data);
    if (pointer === undefined) {
      observer.log?.error({ jobId: job.id }, 'job without a request');
      return undefined;
    }
    const { tenant, messageRequestId: id, wasEnriched } = pointer;
    const tags: JobRun['tags'] = { tenant, messageRequestId: id, jobId: job.id };
    if (wasEnriched) observer.count?.('slack_requests_enriched_jobs_total', { tenant });
    const span = observer.span?.('send slack message', { ...tags });
    try {
      const fence = ids.next();
      const taken = await takeSendLock(keys, { tenant, id }, { fence, ttlMs: rules.lockMs, clock });
      // Another worker is sending; try again when its lock has expired.
      if (taken.kind === 'locked') return { delayMs: taken.expiresInMs + 10 };
      await using lock = taken.lock;
      return await attempt({ tenant, id, lock, signal, tags });
    } catch (error) {
      span?.fail(error);
      observer.log?.error({ ...tags, err: error }, 'request handling failed');
      return { delayMs: troubleDelayMs };
    } finally {
      span?.end();
    }
  };
}

/** Contains the tenant, because several tenants may post to a shared channel. */
function metadataId({ tenant, id }: Pick<JobRun, 'id' | 'tenant'>): string {
  return `${tenant}/${id}`;
}

// `:send-lock` gives one worker exclusive access to a request for at most 15 minutes. The value of
// the key is the fence token of the attempt.
export const sendLockMs = 900_000;

interface SendLock extends AsyncDisposable {
  readonly fence: string;
  /** Whether the lock is lock for at least this long; checked immediately before a call to Slack. */
  holdsFor(ms: number): Promise<boolean>;
}

type TakenLock =
  | { readonly kind: 'taken'; readonly lock: SendLock }
  | { readonly kind: 'locked'; readonly expiresInMs: number };

async function takeSendLock(
  keys: KeyStore,
  request: { readonly tenant: string; readonly id: string },
  {
    fence,
    ttlMs,
    clock,
  }: { readonly fence: string; readonly ttlMs: number; readonly clock: Clock },
): Promise<TakenLock> {
  const key = slackAddressing.sendLock(request.tenant, request.id);
  // Measured before the call, so that our view of the expiry is never late.
  const untilMs = clock.now() + ttlMs;
  const lock = await keys.putIfAbsent(key, fence, { ttlMs });
  if (lock.value !== fence) return { kind: 'locked', expiresInMs: lock.expiresInMs ?? ttlMs };
  return {
    kind: 'taken',
    lock: {
      fence,
      async holdsFor(ms) {
        if (clock.now() + ms > untilMs) return false;
        return (await keys.get(key))?.value === fence && clock.now() + ms <= untilMs;
      },
      async [Symbol.asyncDispose]() {
        // If the key store is unavailable, the lock expires.
        await keys.remove(key, fence).catch(() => false);
      },
    },
  };
}
