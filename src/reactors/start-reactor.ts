// Runs a reactor: a subscription whose handler sends commands. It has a separate checkpoint, so
// rebuilding a read model never sends commands again.

import { isForgotten } from '../store/erasure.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { Terminal } from '../foundation/handler-outcome.ts';
import {
  startSubscription,
  type SubscriptionOptions,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import { subscription, type HandlerContext } from '../subscriptions/subscription.ts';
import type { SubscriptionRoles } from '../subscriptions/subscription-storage.ts';
import {
  askCommand,
  type CommandDenied,
  type Reaction,
  type SendCommand,
  toRequests,
} from './reaction.ts';
import type { Reactor } from './reactor.ts';

export interface ReactorOptions extends SubscriptionOptions {
  readonly send: SendCommand;
}

/**
 * Runs a reactor in this process. The idempotency key of each command is derived from the event and the
 * reactor: after a crash, a reset or in another process the command has the same key, and the aggregate
 * returns its first result.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { reactor, startReactor } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const opened = defineEvent('account.opened.v1', z.object({}));
 * const greet = defineCommand('letter.send', z.object({}));
 * const greetings = reactor({
 *   name: 'sub:banking:greetings:v1',
 *   events: [opened],
 *   from: 'end',
 *   onRejected: 'ignore',
 *   on: { 'account.opened.v1': ({ aggregate }) => ({ id: aggregate.id, command: greet({}) }) },
 * });
 *
 * await using db = openMemory();
 * await using runner = await startReactor(db, greetings, {
 *   send: async ({ id, command, idempotencyKey }) => console.log(id, command.type, idempotencyKey),
 * });
 * await runner.whenCaughtUp();
 */
export function startReactor(
  roles: SubscriptionRoles,
  reactor: Reactor,
  { send, ...options }: ReactorOptions,
): Promise<SubscriptionRunner> {
  const { name, from, filter, tuning } = reactor;
  const definition = subscription({
    ...tuning,
    name,
    from,
    filter,
    handler: (event, context) => react(reactor, send, event, context),
  });
  return startSubscription(roles, definition, options);
}

async function react(
  reactor: Reactor,
  send: SendCommand,
  event: RecordedEvent,
  { attempt, signal, caused }: HandlerContext<unknown>,
): Promise<void> {
  // The data subject was forgotten, so there is nothing to act on.
  if (isForgotten(event.payload)) return;
  const reactions = await reactor.react(event, { attempt, signal });
  const { onRejected } = reactor;
  const source = { ...reactor, trace: caused.headers };
  if (reactor.sends === 'together') {
    const requests = toRequests(event, reactions, source);
    return sendTogether(send, { requests, signal, ignores: onRejected === 'ignore' });
  }
  const accepted: Reaction[] = [];
  for (const [index, request] of toRequests(event, reactions, source).entries()) {
    const reaction = reactions[index] as Reaction;
    const outcome = await askCommand(send, { ...request, signal });
    if (outcome.kind === 'accepted') {
      accepted.push(reaction);
      continue;
    }
    if (outcome.kind === 'rejected' && onRejected === 'ignore') continue;
    if (outcome.kind === 'failed' || typeof onRejected === 'string') throw denied(request, outcome);
    const { reason, message } = outcome;
    const replacements = await onRejected({ event, reaction, reason, message, accepted });
    const branch = request.idempotencyKey ?? '';
    for (const other of toRequests(event, replacements, { ...source, branch })) {
      const again = await askCommand(send, { ...other, signal });
      if (again.kind !== 'accepted') throw denied(other, again);
    }
    return;
  }
}

/** Maximum number of concurrent commands per event. */
const togetherMax = 64;

/** Sends all commands even if some fail; a retry gets the first result of those already accepted. */
async function sendTogether(
  send: SendCommand,
  {
    requests,
    signal,
    ignores,
  }: {
    readonly requests: readonly Parameters<SendCommand>[0][];
    readonly signal: AbortSignal;
    readonly ignores: boolean;
  },
): Promise<void> {
  for (let at = 0; at < requests.length; at += togetherMax) {
    const some = requests.slice(at, at + togetherMax);
    const outcomes = await Promise.allSettled(
      some.map((request) => askCommand(send, { ...request, signal })),
    );
    // Commands without an outcome are retried first; throwing for a denied one would stop all retries.
    const open = outcomes.find((outcome) => outcome.status === 'rejected');
    if (open !== undefined) throw open.reason;
    for (const [index, request] of some.entries()) {
      const outcome = outcomes[index];
      if (outcome?.status !== 'fulfilled' || outcome.value.kind === 'accepted') continue;
      if (outcome.value.kind === 'failed' || !ignores) throw denied(request, outcome.value);
    }
  }
}

function denied({ command }: Parameters<SendCommand>[0], outcome: CommandDenied): Terminal {
  const { kind, reason, message, cause } = outcome;
  const outcomeText = kind === 'rejected' ? 'was rejected' : 'failed';
  return new Terminal(`${command.type} ${outcomeText} (${reason}): ${message}`, { cause });
}
