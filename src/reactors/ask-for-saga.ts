// One attempt at a saga's command: with its key, within its time, and with an answer or a doubt.

import { buildIdempotencyKey } from '../contracts/idempotency-key.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import { messageOf } from '../foundation/error-text.ts';
import { withinTime } from '../foundation/within-time.ts';
import { outcomeOf } from '../subscriptions/handler-outcome.ts';
import { askCommand, type CommandAnswer } from './command-answer.ts';
import type { SendCommand } from './reaction.ts';
import type { Saga } from './saga.ts';
import type { SagaRequest } from './saga-fact.ts';

interface Asking {
  readonly stream: string;
  readonly n: number;
  readonly what: 'do' | 'undo';
  readonly correlationId: string;
  readonly causationId: string;
  /** After this attempt nobody tries again by himself. */
  readonly isLast: boolean;
  readonly signal: AbortSignal;
  readonly trace?: Readonly<Record<string, unknown>> | undefined;
}

/** Nobody knows whether the command took effect. */
interface Doubt {
  readonly kind: 'doubt';
  readonly message: string;
}

export type AskForSaga = (request: SagaRequest, asking: Asking) => Promise<CommandAnswer | Doubt>;

/** Rejects while there are attempts left; in doubt after the last one. */
export function createAskForSaga({
  saga,
  send,
  clock,
}: {
  readonly saga: Saga;
  readonly send: SendCommand;
  readonly clock: Clock;
}): AskForSaga {
  return async (request, asking) => {
    const { stream, n, what, correlationId, causationId, isLast, signal, trace } = asking;
    // The same in every attempt, in every process, and after an operator has resumed it.
    const idempotencyKey = buildIdempotencyKey({
      tenant: request.tenant,
      service: saga.bc,
      operation: saga.name,
      naturalKey: idFromKey(`${stream} ${n} ${what}`),
    });
    const late = new AbortController();
    const sent = askCommand(send, {
      ...request,
      idempotencyKey,
      correlationId,
      causationId,
      signal: AbortSignal.any([signal, late.signal]),
      ...(trace === undefined ? {} : { headers: trace }),
    });
    const ms = saga.commandTimeoutMs;
    const expire = (): never => {
      late.abort();
      throw new MillraceError('HANDLER_TIMEOUT', `no answer within ${ms} ms`);
    };
    try {
      return await withinTime(sent, { ms, late: expire, clock });
    } catch (error) {
      const isPutOff = outcomeOf(error).kind === 'snooze';
      if (!isLast || isPutOff || signal.aborted || isAway(error)) throw error;
      return { kind: 'doubt', message: messageOf(error) };
    }
  };
}

/** The database is away, or this process is going: no attempt, however long it takes. */
export function isAway(error: unknown): boolean {
  return (hasCode(error, 'STORE_UNAVAILABLE') && error.retryable) || hasCode(error, 'STORE_CLOSED');
}
