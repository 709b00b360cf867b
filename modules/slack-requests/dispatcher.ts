// From `message-request.queued.v1` to the queue. `:dispatched` is set before the job is added; a crash between the
// two is made up for by the event, which comes again, and if that too is lost, by the sweeper.

import { slackAddressing } from 'millrace/contracts';
import type { ModuleContext } from 'millrace/platform';
import { subscription, type Subscription } from 'millrace/subscriptions';
import type { KeyStore } from 'millrace/work';
import { requestQueued } from './message-request-events.ts';
import { messageRequest, tagsOf } from './message-request.ts';
import { jobIdOf, roundOf, sendJob } from './send-job.ts';

type Context = Pick<ModuleContext, 'clock' | 'keys' | 'load' | 'observer' | 'workQueue'>;

/** Of a request that is done, nobody asks for it any more. */
const dispatchedTtlMs = 30 * 86_400_000;

export function dispatcher(context: Context, leaseMs?: number): Subscription {
  const { clock, load, observer } = context;
  return subscription({
    name: 'sub:slack-requests:dispatcher:v1',
    filter: { types: [requestQueued.type] },
    // A queue that is away for long is no reason for a dead letter: the sweeper would have to do it all.
    retry: { initialMs: 500, factor: 2, capMs: 30_000, jitterMs: 500, attemptsMax: 100 },
    async handler({ tenant, aggregate: { id }, payload }) {
      const { round } = requestQueued.parse(payload);
      const { state } = await load(messageRequest, { tenant, id });
      if (state.status !== 'queued' || state.round !== round) return;
      const keys = await context.keys();
      const queue = await context.workQueue(slackAddressing.queueName, { leaseMs });
      const jobId = await markDispatched(keys, { tenant, id, round });
      await queue.add(sendJob({ tenant, id, ...roundOf(jobId) }, state, clock.now()));
      const tags = { tenant, messageRequestId: id, jobId, ...tagsOf(state) };
      observer.log?.debug(tags, 'request queued');
    },
  });
}

/** The job that stands for this round, whoever dispatched it first. */
async function markDispatched(
  keys: KeyStore,
  { tenant, id, round }: { readonly tenant: string; readonly id: string; readonly round: number },
): Promise<string> {
  const key = slackAddressing.dispatched(tenant, id);
  const jobId = jobIdOf({ tenant, id, round, generation: 1 });
  const options = { ttlMs: dispatchedTtlMs };
  for (;;) {
    const { value } = await keys.putIfAbsent(key, jobId, options);
    if (roundOf(value).round >= round) return value;
    // Of a round before this one.
    if (await keys.replace(key, { from: value, to: jobId, ...options })) return jobId;
  }
}

/** False: somebody else was faster. */
export function replaceDispatched(
  keys: KeyStore,
  key: string,
  change: { readonly from: string | undefined; readonly to: string },
): Promise<boolean> {
  return keys.replace(key, { ...change, ttlMs: dispatchedTtlMs });
}
