// Decides the next facts of a saga from its state and an input, as pure functions. The caller stores the
// facts before it sends any command.

import { MillraceError } from '../foundation/error.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { CommandOutcome } from './reaction.ts';
import { expiryTimer, sagaLimits, type AnyAction, type Saga } from './saga.ts';
import type { SagaView } from './saga.ts';
import type { ParkedAt, SagaFact, SagaOperator, SagaRequest } from './saga-fact.ts';
import { evolveSaga, unanswered, type SagaState, type SagaStepState } from './saga-state.ts';

export interface DecideWith {
  readonly saga: Saga;
  readonly tenant: string;
  readonly key: string;
  readonly nowMs: number;
}

/** Work that this process can do for a saga. */
export type SagaWork =
  | { readonly kind: 'timer'; readonly timer: string }
  | { readonly kind: 'step'; readonly step: SagaStepState }
  | { readonly kind: 'compensation'; readonly step: SagaStepState }
  | { readonly kind: 'event'; readonly queued: SagaState['queued'][number] }
  /** After an operator's change: complete the saga or start the next compensation. */
  | { readonly kind: 'settle' }
  | { readonly kind: 'none' };

/** One piece at a time: it stores a fact, and the event of that fact triggers the next call. */
export function nextWork(state: SagaState): SagaWork {
  const { status, fired, queued, steps } = state;
  if (status !== 'running' && status !== 'compensating') return { kind: 'none' };
  const [timer] = fired;
  if (timer !== undefined) return { kind: 'timer', timer };
  // This also applies while compensating: a step needs an outcome before it can be compensated.
  const step = unanswered(state);
  if (step !== undefined) return { kind: 'step', step };
  if (status === 'compensating') {
    const outstanding = steps.find((each) => each.status === 'compensating');
    return outstanding === undefined
      ? { kind: 'settle' }
      : { kind: 'compensation', step: outstanding };
  }
  if (state.isEnding) return { kind: 'settle' };
  return queued[0] === undefined ? { kind: 'none' } : { kind: 'event', queued: queued[0] };
}

/** Decides an external event, depending on the status of the saga. */
export function decideEvent(
  state: SagaState,
  event: RecordedEvent,
  context: DecideWith,
): readonly SagaFact[] {
  const { saga } = context;
  const { eventId, type: eventType, stream } = event;
  // A duplicate delivery: the result is already stored.
  if (state.taken.has(eventId)) return [];
  const hold: SagaFact = { kind: 'event-held', eventId, eventType, stream };
  switch (state.status) {
    case 'waiting': {
      if (!saga.startOn.has(eventType)) return saga.onEarly === 'hold' ? [hold] : [];
      const decision = begin(state, context, event.correlationId);
      decision.add({ kind: 'started', eventType });
      decision.add({ kind: 'data-set', data: saga.initial });
      if (saga.expiresAfterMs !== undefined) setTimer(decision, expiryTimer, saga.expiresAfterMs);
      return take(decision, event);
    }
    case 'running':
      // Queue the event after the queued events to keep their order.
      if (state.queued.length > 0) return [hold];
      return take(begin(state, context), event);
    case 'parked':
      return state.parked?.from === 'running' ? [hold] : [];
    default:
      return [];
  }
}

/** Decides a queued event, now that the saga runs. Undefined: the event was deleted or forgotten. */
export function decideQueued(
  state: SagaState,
  queued: SagaState['queued'][number],
  event: RecordedEvent | undefined,
  context: DecideWith,
): readonly SagaFact[] {
  if (event !== undefined) return take(begin(state, context), event);
  const { eventId, eventType } = queued;
  return [{ kind: 'event-taken', eventId, eventType }];
}

function take(decision: Decision, event: RecordedEvent): readonly SagaFact[] {
  const { eventId, type: eventType } = event;
  const { saga } = decision;
  // Each key runs once: a second start event changes nothing.
  const isSecondStart = eventType === decision.before.startedBy;
  decision.add({ kind: 'event-taken', eventId, eventType });
  if (!isSecondStart) perform(decision, saga.react(event, viewOf(decision)));
  return settle(decision);
}

export function decideTimer(
  state: SagaState,
  timer: string,
  context: DecideWith,
): readonly SagaFact[] {
  const decision = begin(state, context);
  decision.add({ kind: 'timer-taken', timer });
  if (timer === expiryTimer) decision.add({ kind: 'compensating', reason: 'expired' });
  else perform(decision, context.saga.timers.get(timer)?.(viewOf(decision)));
  return settle(decision);
}

/** Marks due timers as fired; the decision about them comes later, because it may fail. */
export function decideDue(state: SagaState, nowMs: number): readonly SagaFact[] {
  if (state.status !== 'running') return [];
  return [...state.timers]
    .filter(([, { dueAtMs }]) => dueAtMs <= nowMs)
    .toSorted(([, a], [, b]) => a.dueAtMs - b.dueAtMs)
    .map(([timer]) => ({ kind: 'timer-fired', timer }));
}

export function decideStepOutcome(
  state: SagaState,
  n: number,
  outcome: CommandOutcome | { readonly kind: 'doubt'; readonly message: string },
  context: DecideWith,
): readonly SagaFact[] {
  const step = state.steps[n];
  if (step?.status === 'failed' && outcome.kind === 'accepted') {
    return decideLate(state, step, context);
  }
  if (step?.status !== 'requested' || state.status === 'parked') return [];
  const decision = begin(state, context);
  const isRunning = state.status === 'running';
  const definition = context.saga.steps.get(step.step);
  if (outcome.kind === 'doubt') {
    decision.add({ kind: 'step-doubted', n, message: outcome.message });
    if (isRunning) decision.add({ kind: 'compensating', reason: `${step.step}: no answer` });
  } else if (outcome.kind === 'accepted') {
    decision.add({ kind: 'step-done', n });
    if (isRunning) perform(decision, definition?.onDone?.(viewOf(decision)));
  } else {
    const { kind, reason, message } = outcome;
    decision.add({ kind: 'step-failed', n, reason, message });
    if (isRunning && definition?.onDenied !== undefined) {
      perform(decision, definition.onDenied(viewOf(decision), { kind, reason, message }));
    } else if (isRunning) {
      decision.add({ kind: 'compensating', reason: `${step.step}: ${reason}` });
    }
  }
  return settle(decision);
}

/**
 * Two processes sent the command, one of them after it had lost its lease. The aggregate rejected one and
 * then accepted the other. The accepted command took effect, so it must be compensated.
 */
function decideLate(
  state: SagaState,
  { n, step }: SagaStepState,
  context: DecideWith,
): readonly SagaFact[] {
  const decision = begin(state, context);
  decision.add({ kind: 'step-done', n });
  if (state.status === 'compensated') {
    decision.add({ kind: 'compensating', reason: `${step}: accepted after it was rejected` });
  }
  if (state.status === 'running') {
    // The saga has already continued as if the step had failed, so an operator must decide.
    const why = {
      reason: 'accepted-late',
      message: 'the command was accepted after it was rejected',
    };
    for (const fact of decidePark(state, { at: 'answer', n, accepted: true }, why)) {
      decision.add(fact);
    }
  }
  return settle(decision);
}

export function decideCompensationOutcome(
  state: SagaState,
  n: number,
  outcome: CommandOutcome,
  context: DecideWith,
): readonly SagaFact[] {
  if (state.steps[n]?.status !== 'compensating' || state.status !== 'compensating') return [];
  if (outcome.kind === 'accepted') {
    const decision = begin(state, context);
    decision.add({ kind: 'compensation-done', n });
    return settle(decision);
  }
  return decidePark(state, { at: 'compensation', n }, outcome);
}

export function decideSettle(state: SagaState, context: DecideWith): readonly SagaFact[] {
  return settle(begin(state, context));
}

/** Parks the saga: it needs an operator to continue. */
export function decidePark(
  state: SagaState,
  at: ParkedAt,
  why: { readonly reason: string; readonly message: string },
): readonly SagaFact[] {
  if (state.status !== 'running' && state.status !== 'compensating') return [];
  return [{ kind: 'parked', ...at, reason: why.reason, message: why.message }];
}

/** `skip`: continue without the work that the saga is parked at. */
export function decideResume(
  { parked }: SagaState,
  how: 'resume' | 'skip',
  operator: SagaOperator,
): readonly SagaFact[] {
  if (parked === undefined) return [];
  const resumed: SagaFact = { kind: 'resumed', how, ...operator };
  if (how === 'resume') return [resumed];
  switch (parked.at) {
    case 'compensation':
      return [resumed, { kind: 'compensation-skipped', n: parked.n }];
    case 'answer':
      return parked.accepted
        ? [resumed, { kind: 'step-done', n: parked.n }]
        : [resumed, ...failed(parked.n, parked.from)];
    case 'timer':
      return [resumed, { kind: 'timer-taken', timer: parked.timer }];
    case 'event':
      return [resumed, { kind: 'event-taken', eventId: parked.eventId, eventType: '' }];
    default:
      return [resumed, ...failed(parked.n, parked.from)];
  }
}

function failed(n: number, from: 'running' | 'compensating'): readonly SagaFact[] {
  const fact: SagaFact = { kind: 'step-failed', n, reason: 'skipped' };
  return from === 'running'
    ? [fact, { kind: 'compensating', reason: 'skipped by an operator' }]
    : [fact];
}

interface Decision extends DecideWith {
  readonly before: SagaState;
  state: SagaState;
  readonly facts: SagaFact[];
  readonly correlationId: string;
  add(fact: SagaFact): void;
}

function begin(state: SagaState, context: DecideWith, correlationId?: string): Decision {
  const at = {
    eventId: '',
    occurredAt: new Date(context.nowMs).toISOString(),
    correlationId: correlationId ?? state.correlationId ?? '',
  };
  const decision: Decision = {
    ...context,
    before: state,
    state,
    facts: [],
    correlationId: at.correlationId,
    add(fact) {
      decision.facts.push(fact);
      decision.state = evolveSaga(decision.state, fact, at);
    },
  };
  return decision;
}

function viewOf({ saga, state, tenant, key, nowMs, correlationId }: Decision): SagaView {
  const { data = saga.initial } = state;
  const steps = state.steps.map(({ step, status }) => ({ step, status }));
  return { tenant, key, data, nowMs, correlationId, steps };
}

function perform(decision: Decision, actions: readonly AnyAction[] = []): void {
  for (const action of actions) {
    // Actions after an `end` action are ignored.
    if (decision.state.status !== 'running' || decision.state.isEnding) return;
    performOne(decision, action);
  }
}

function performOne(decision: Decision, action: AnyAction): void {
  const { saga, tenant, state } = decision;
  if ('data' in action) {
    decision.add({ kind: 'data-set', data: action.data });
  } else if ('timer' in action) {
    known(saga, 'timer', saga.timers, action.timer);
    setTimer(decision, action.timer, action.afterMs);
  } else if ('cancel' in action) {
    const { cancel } = action;
    const isSet = state.timers.has(cancel) || state.fired.includes(cancel);
    if (isSet) decision.add({ kind: 'timer-cancelled', timer: cancel });
  } else if ('run' in action) {
    known(saga, 'step', saga.steps, action.run);
    const request = requestOf(action, tenant);
    decision.add({ kind: 'step-requested', n: state.steps.length, step: action.run, request });
  } else if (action.end === 'completed') {
    decision.add({ kind: 'completing' });
  } else {
    decision.add({ kind: 'compensating', reason: action.reason });
  }
}

function setTimer(decision: Decision, timer: string, afterMs: number): void {
  if (!(afterMs >= 0 && afterMs <= sagaLimits.timerMsMax)) {
    throw invalid(decision.saga, `set timer ${timer} to ${afterMs} ms`);
  }
  const dueAt = new Date(decision.nowMs + Math.ceil(afterMs)).toISOString();
  decision.add({ kind: 'timer-set', timer, dueAt });
}

/** Ends the saga if no work is left; while compensating, requests the next compensation in reverse order. */
function settle(decision: Decision): readonly SagaFact[] {
  const { saga } = decision;
  while (unanswered(decision.state) === undefined) {
    const { status, isEnding, steps, done } = decision.state;
    if (status === 'running' && isEnding) decision.add({ kind: 'completed' });
    if (status !== 'compensating') break;
    if (steps.some((each) => each.status === 'compensating')) break;
    const last = done
      .map((n) => steps[n])
      .findLast((step) => step?.status === 'done' || step?.status === 'doubted');
    if (last === undefined) {
      decision.add({ kind: 'compensated' });
      break;
    }
    if (!undo(decision, saga, last)) break;
  }
  return decision.facts;
}

/** False: the compensation was requested, or the saga is parked. True: there is nothing to compensate. */
function undo(decision: Decision, saga: Saga, step: SagaStepState): boolean {
  const { n } = step;
  const park = (reason: string, message: string): false => {
    decision.add({ kind: 'parked', at: 'compensation', n, reason, message });
    return false;
  };
  const definition = saga.steps.get(step.step);
  if (definition === undefined) {
    return park('step-unknown', `the saga no longer has a step '${step.step}'`);
  }
  const { compensate } = definition;
  if (compensate === undefined) {
    decision.add({ kind: 'compensation-skipped', n });
    return true;
  }
  if (step.request === undefined) {
    return park('forgotten', 'the data subject of the step was forgotten');
  }
  try {
    const wanted = compensate(viewOf(decision), step.request);
    if (wanted === undefined) {
      decision.add({ kind: 'compensation-skipped', n });
      return true;
    }
    const request = requestOf(wanted, decision.tenant);
    decision.add({ kind: 'compensation-requested', n, request });
    return false;
  } catch (error) {
    return park('handler-failed', error instanceof Error ? error.message : String(error));
  }
}

function requestOf(
  {
    tenant,
    id,
    command,
    aggregate,
  }: Omit<SagaRequest, 'tenant'> & { readonly tenant?: string | undefined },
  own: string,
): SagaRequest {
  const { type, payload } = command;
  const request = { tenant: tenant ?? own, id, command: { type, payload } };
  return aggregate === undefined ? request : { ...request, aggregate };
}

function known(saga: Saga, what: string, names: ReadonlyMap<string, unknown>, name: string): void {
  if (!names.has(name)) throw invalid(saga, `has no ${what} '${name}'`);
}

function invalid(saga: Saga, reason: string): MillraceError {
  return new MillraceError('REACTOR_INVALID', `${saga.subscription} ${reason}`, {
    details: { saga: saga.subscription },
  });
}
