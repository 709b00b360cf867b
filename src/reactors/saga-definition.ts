// What a user writes down to define a saga.

import type { NewCommand } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Identifier } from '../contracts/identifier.ts';
import type { Position } from '../store/position.ts';
import type { EventNamed, RecordedEventOf } from './reaction.ts';
import type { ReactorTuning } from './reactor.ts';
import type { SagaStepStatus } from './saga-state.ts';

/** What a decision may know. */
export interface SagaView<Data = unknown> {
  readonly tenant: string;
  readonly key: string;
  readonly data: Data;
  readonly nowMs: number;
  readonly correlationId: string;
  /** Its steps so far, in the order in which they were asked for. */
  readonly steps: readonly { readonly step: string; readonly status: SagaStepStatus }[];
}

/** What follows: decided by a pure function, written down, then carried out. */
export type SagaAction<Data, Step extends string, Timer extends string> =
  /** Sends a command; the step is done when it is accepted. */
  | {
      readonly run: Step;
      readonly id: string;
      readonly command: NewCommand;
      /** Default: the saga's. */
      readonly tenant?: string;
    }
  /** What the saga knows from now on: JSON. */
  | { readonly data: Data }
  /** Sets the timer, or sets it anew. */
  | { readonly timer: Timer; readonly afterMs: number }
  | { readonly cancel: Timer }
  /** As soon as all steps are answered; if one of them is denied, it is compensated after all. */
  | { readonly end: 'completed' }
  /** What was done is undone, last step first. */
  | { readonly end: 'failed'; readonly reason: string };

export type SagaActions<Data, Step extends string, Timer extends string> =
  | readonly SagaAction<Data, Step, Timer>[]
  | undefined;

/** The command that undoes a step; undefined: nothing is to be undone. */
export type Compensation =
  | { readonly id: string; readonly command: NewCommand; readonly tenant?: string }
  | undefined;

export interface StepDenial {
  readonly kind: 'refused' | 'rejected';
  readonly reason: string;
  readonly message: string;
}

export interface SagaStep<Data, Step extends string, Timer extends string> {
  readonly onDone?: (view: SagaView<Data>) => SagaActions<Data, Step, Timer>;
  /** Default: the saga has failed, and is compensated. */
  readonly onDenied?: (view: SagaView<Data>, denial: StepDenial) => SagaActions<Data, Step, Timer>;
  /** Absent: the step needs no undoing. */
  readonly compensate?: (
    view: SagaView<Data>,
    sent: { readonly tenant: string; readonly id: string; readonly command: NewCommand },
  ) => Compensation;
}

export type SagaEventMap<
  Event extends NewEvent,
  Data,
  Step extends string,
  Timer extends string,
> = {
  readonly [Type in Event['type']]: (
    event: RecordedEventOf<Extract<Event, { readonly type: Type }>>,
    view: SagaView<Data>,
  ) => SagaActions<Data, Step, Timer>;
};

export interface SagaDefinition<
  Bc extends string,
  Name extends string,
  Definitions extends readonly EventNamed[],
  Data,
  Step extends string,
  Timer extends string,
> extends Omit<ReactorTuning, 'timeoutMs'> {
  /** With `name` and `version`: the category of its streams, and `sub:<bc>:<name>:v<version>`. */
  readonly bc: Identifier<Bc>;
  readonly name: Identifier<Name>;
  /** Raised when sagas under way should end by the old rules. */
  readonly version: number;
  readonly events: Definitions;
  /** Where a new one begins: with what is appended from now on, or with all that ever happened. */
  readonly from: 'now' | 'start' | Position;
  /** Empty, with `onEarly: 'ignore'`: those under way end, and no new one begins. */
  readonly startOn: readonly EventOf<Definitions[number]>['type'][];
  /** Which saga of its tenant an event belongs to; undefined: to none. One key runs once. */
  readonly correlateBy: (
    event: RecordedEventOf<EventOf<Definitions[number]>>,
  ) => string | undefined;
  /** What it knows before its first event. */
  readonly initial: Data;
  readonly on: SagaEventMap<
    EventOf<Definitions[number]>,
    NoInfer<Data>,
    NoInfer<Step>,
    NoInfer<Timer>
  >;
  readonly steps: {
    readonly [Each in Step]: SagaStep<NoInfer<Data>, NoInfer<Step>, NoInfer<Timer>>;
  };
  readonly timers?: {
    readonly [Each in Timer]: (
      view: SagaView<NoInfer<Data>>,
    ) => SagaActions<NoInfer<Data>, NoInfer<Step>, NoInfer<Timer>>;
  };
  /** From its start; then it has failed, and is compensated. */
  readonly expiresAfterMs?: number;
  /** An event that comes before the start waits for it (default), or is ignored. */
  readonly onEarly?: 'hold' | 'ignore';
  /**
   * A step whose command has no answer after the last attempt, neither yes nor no: the saga is
   * parked (default), or compensated, and this step with it, as it may have taken effect.
   */
  readonly onUnanswered?: 'park' | 'compensate';
  /** How long one attempt at a command may take. Default: 10 s. */
  readonly commandTimeoutMs?: number;
}
