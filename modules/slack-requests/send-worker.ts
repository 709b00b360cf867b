// One job, from the pointer to the outcome. Killed anywhere, the request is in a state from which whoever comes
// next goes on: not begun (it is sent), begun (the channel is looked through first), or done (nothing happens).

import type { SlackClient } from 'millrace/adapters/slack';
import { type NewCommand, slackAddressing } from 'millrace/contracts';
import { createIds, hasCode, type Attributes, type Clock } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import type { JobHandler, JobOutcome, KeyStore } from 'millrace/work';
import { paceLine, type Pace } from './channel-pace.ts';
import { afterLookup, afterPost, type AttemptRules, type Step } from './decide-outcome.ts';
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
import { readSendJob } from './dispatcher.ts';

interface WorkerRules {
  readonly lockMs: number;
  readonly settleMs: number;
  readonly retryMs: number;
  readonly attemptsMax: number;
  readonly channelIntervalMs: number;
  readonly workspaceIntervalMs: number;
  /** Of one call of Slack. */
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

interface Asked {
  readonly tenant: string;
  readonly id: string;
  readonly lock: SendLock;
  readonly signal: AbortSignal;
  /** In every line of the log; what the request says of itself is added once it is read. */
  readonly tags: Record<string, Attributes[string]>;
}

type Ready = Extract<Prepared, { readonly kind: 'ready' }>;

/** What could not be done because something of ours was away is done again soon. */
const troubleDelayMs = 5_000;

export function createSendHandler(options: WorkerOptions): JobHandler {
  const { context, keys, slack, secrets, pace, rules, random = Math.random } = options;
  const { clock, observer, load } = context;
  const ids = createIds();

  async function attempt(asked: Asked): Promise<JobOutcome> {
    const { tenant, lock, tags } = asked;
    const { state, revision } = await load(messageRequest, asked);
    Object.assign(tags, tagsOf(state));
    const { content, status } = state;
    if (content === undefined || status !== 'queued') return undefined;
    const waitMs = Math.max(state.dueAtMs, quietUntilMs(state)) - clock.now();
    if (waitMs > 0) return { delayMs: waitMs };
    const prepared = await prepareRequest(context, tenant, content);
    if (prepared.kind === 'failed') return fail(asked, state, prepared);
    const token = tokenOf(tenant, content.workspaceCode, prepared);
    if (token === undefined) {
      const reason = 'the token of the workspace does not open with the keys that are configured';
      return fail(asked, state, { code: 'secret-unreadable', reason });
    }
    const delayed = await wait(tenant, content, prepared);
    if (delayed !== undefined) return delayed;
    const command = beginAttempt({ fence: lock.fence, channelId: prepared.channelId });
    try {
      await tell(asked, state, command, revision);
    } catch (error) {
      // Changed, or decided, while it was made ready: it is looked at once more.
      if (hasCode(error, 'VERSION_CONFLICT') || hasCode(error, 'COMMAND_REFUSED')) {
        return { delayMs: 0 };
      }
      throw error;
    }
    const step = await perform(asked, state, { prepared, content, token });
    return close(asked, state, step);
  }

  /** Looks where it may be already, and posts it where it is not. */
  async function perform(
    asked: Asked,
    state: RequestState,
    {
      prepared,
      content,
      token,
    }: { readonly prepared: Ready; readonly content: RequestContent; readonly token: string },
  ): Promise<Step> {
    const { lock, signal } = asked;
    const { threadTs } = content;
    const looking = { token, signal };
    // Not cut off when the process stops: it would not be known what became of it.
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
          { channel, threadTs, id: metadataId(asked), sinceMs },
          looking,
        );
        const known = afterLookup(found, attemptRules);
        observer.log?.info({ ...asked.tags, found: found.kind }, 'channel was looked through');
        if (known !== undefined) return known;
      }
    }
    // What leaves must not outlive the lock.
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
        id: metadataId(asked),
        ...(threadTs === undefined ? {} : { threadTs }),
      },
      posting,
    );
    observer.log?.debug({ ...asked.tags, kind: posted.kind }, 'Slack was asked');
    return afterPost(posted, attemptRules);
  }

  /** By a command; what it says is what happened. */
  async function close(asked: Asked, state: RequestState, step: Step): Promise<JobOutcome> {
    const { tenant, lock } = asked;
    const { fence } = lock;
    if (step.kind === 'sent') {
      await tell(asked, state, recordSent({ ts: step.ts, channelId: step.channelId }));
      observer.count?.('slack_requests_sent_total', { tenant });
      observer.log?.info(asked.tags, 'request sent');
      return undefined;
    }
    if (step.kind === 'failed') return fail(asked, state, step);
    const { code, mayBePosted, counts, delayMs } = step;
    await tell(asked, state, deferAttempt({ fence, code, mayBePosted, counts }));
    const workspaceCode = state.content?.workspaceCode ?? '';
    if (step.pauseMs !== undefined) await pace.pause(paceLine(tenant, workspaceCode), step.pauseMs);
    observer.count?.('slack_requests_deferred_total', { tenant, code });
    observer.log?.warn({ ...asked.tags, code, delayMs, mayBePosted }, 'request deferred');
    return { delayMs };
  }

  async function fail(
    asked: Asked,
    state: RequestState,
    why: { readonly code: string; readonly reason?: string; readonly mayBePosted?: boolean },
  ): Promise<undefined> {
    const { code, reason, mayBePosted = state.mayBePosted } = why;
    const { fence } = asked.lock;
    const said = { fence, code, mayBePosted, ...(reason === undefined ? {} : { reason }) };
    await tell(asked, state, recordFailed(said));
    observer.count?.('slack_requests_failed_total', { tenant: asked.tenant, code });
    observer.log?.warn({ ...asked.tags, code }, 'request failed');
  }

  function tell(
    { tenant, id, signal }: Asked,
    { correlationId }: RequestState,
    command: NewCommand,
    expected?: number,
  ): Promise<unknown> {
    const flow = correlationId === '' ? {} : { correlationId };
    const seen = expected === undefined ? {} : { expected };
    // What Slack has done is written down even if the process is about to stop.
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
      const place = await pace.take(line, intervalMs);
      if ('delayMs' in place) return place;
      if (place.waitMs > 0) await clock.sleep(place.waitMs);
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

  /** Until then Slack may still be at what an attempt before this one asked for. */
  function quietUntilMs({ mayBePosted, lastBegunAtMs = 0 }: RequestState): number {
    return mayBePosted ? lastBegunAtMs + rules.settleMs : 0;
  }

  return async (job, { signal }) => {
    const pointer = readSendJob(job.data);
    if (pointer === undefined) {
      observer.log?.error({ jobId: job.id }, 'a job that points to no request');
      return undefined;
    }
    const { tenant, messageRequestId: id, wasEnriched } = pointer;
    const tags: Asked['tags'] = { tenant, messageRequestId: id, jobId: job.id };
    if (wasEnriched) observer.count?.('slack_requests_enriched_jobs_total', { tenant });
    const span = observer.span?.('send slack message', { ...tags });
    try {
      const fence = ids.next();
      const taken = await takeSendLock(keys, { tenant, id }, { fence, ttlMs: rules.lockMs, clock });
      // Whoever has it sends; should it have died, this job comes when the lock is over.
      if (taken.kind === 'held') return { delayMs: taken.expiresInMs + 10 };
      await using lock = taken.lock;
      return await attempt({ tenant, id, lock, signal, tags });
    } catch (error) {
      span?.fail(error);
      observer.log?.error({ ...tags, err: error }, 'request could not be worked on');
      return { delayMs: troubleDelayMs };
    } finally {
      span?.end();
    }
  };
}

/** One request of one tenant: in shared channels several tenants may post. */
function metadataId({ tenant, id }: Pick<Asked, 'id' | 'tenant'>): string {
  return `${tenant}/${id}`;
}

// `:send-lock`: one worker at a time for one request, for 15 minutes at most. Its value is the fence that the
// attempt is opened with.
export const sendLockMs = 900_000;

export interface SendLock extends AsyncDisposable {
  readonly fence: string;
  /** Whether it is still ours, and will be for so long. Asked just before something leaves. */
  holdsFor(ms: number): Promise<boolean>;
}

export type TakenLock =
  | { readonly kind: 'taken'; readonly lock: SendLock }
  | { readonly kind: 'held'; readonly expiresInMs: number };

export async function takeSendLock(
  keys: KeyStore,
  request: { readonly tenant: string; readonly id: string },
  {
    fence,
    ttlMs,
    clock,
  }: { readonly fence: string; readonly ttlMs: number; readonly clock: Clock },
): Promise<TakenLock> {
  const key = slackAddressing.sendLock(request.tenant, request.id);
  // From before it is taken: by our clock it ends early, never late.
  const untilMs = clock.now() + ttlMs;
  const held = await keys.putIfAbsent(key, fence, { ttlMs });
  if (held.value !== fence) return { kind: 'held', expiresInMs: held.expiresInMs ?? ttlMs };
  return {
    kind: 'taken',
    lock: {
      fence,
      async holdsFor(ms) {
        if (clock.now() + ms > untilMs) return false;
        return (await keys.get(key))?.value === fence && clock.now() + ms <= untilMs;
      },
      async [Symbol.asyncDispose]() {
        // Where the keys are away it ends by itself.
        await keys.remove(key, fence).catch(() => false);
      },
    },
  };
}
